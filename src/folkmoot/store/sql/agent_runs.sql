-- name: insert_agent_run$
insert into agent_run (tenant_id, run_id, agent_id, owner_id, channel, channel_id, reply_params, correlation_token, conversation_id, parent_run,
                       created_at, modified_at)
select :tenant_id, :run_id, (select p.definition_id from process p where p.tenant_id = :tenant_id and p.run_id = :run_id), :owner_id, :channel, :channel_id, :reply_params, :correlation_token, :conversation_id, (
           select a.id from agent_run a where a.tenant_id = :tenant_id and a.run_id = :parent_id), t.now, t.now
from (select folkmoot_now() as now) t
returning id;

-- name: note*!
-- What a worker's append moved: the phase, and the payload's next revision, which nobody changes afterwards.
with t as materialized (select folkmoot_now() as now),
before as materialized (
    select payload_id from agent_run where tenant_id = :tenant_id and run_id = :run_id for update),
s as (
    update content c set superseded_at = t.now from before b cross join t
    where c.tenant_id = :tenant_id and c.run_id = :run_id and c.content_id = b.payload_id),
a as (
    update agent_run set current_phase = :phase::agent_run_phase, payload_revision = payload_revision + 1, payload_id = :payload_id, modified_at = t.now
    from t where tenant_id = :tenant_id and run_id = :run_id
    returning tenant_id, run_id, id, payload_revision),
c as (
    insert into content (tenant_id, run_id, content_id, size, characters, created_at, is_referred_to, path)
    select a.tenant_id, a.run_id, :payload_id, :size, :characters, t.now, true, format('agent-runs/%s/%s', a.id, a.payload_revision)
    from a cross join t)
insert into content_chunk (tenant_id, run_id, content_id, number, piece)
select a.tenant_id, a.run_id, :payload_id, 0, :payload from a;

-- name: executed*!
-- In the transaction that records a call as begun: what a person consented to was executed, and is so once.
update chat_item set executed_at = folkmoot_now(), updated_at = folkmoot_now()
where tenant_id = :tenant_id and run_id = :run_id and call_id = any(:call_ids::uuid[]) and executed_at is null;

-- name: await_consent$
select folkmoot_await_consent(:tenant_id, :run_id, :call_id, :chat_item_id, :conversation_id, :card::jsonb, :hash, :asked_by, :secret_hash,
                              :sealed_secret, :message_id);

-- name: join_consent$
select folkmoot_join_consent(:tenant_id, :sub_run_ids::uuid[]);

-- name: get^
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id and a.id = :id;

-- name: by_run^
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id and a.run_id = :run_id;

-- name: by_token^
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id and a.correlation_token = :token;

-- name: page
-- The newest first. It is planned anew for the values at hand, so that a filter that is null is gone.
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id
    and (:status::agent_run_status is null or a.status = :status::agent_run_status)
    and (:agent_id::uuid is null or a.agent_id = :agent_id::uuid)
    and (:parent::bigint is null or a.parent_run = :parent::bigint)
    and (:conversation_id::uuid is null or a.conversation_id = :conversation_id::uuid)
    and (:after::bigint is null or a.id < :after::bigint)
order by a.id desc limit :limit::bigint;

-- name: page_of_person
-- Roots that a person started, or whose agent is theirs; null: of everybody. Those that await consent are left out.
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id and a.parent_run is null and a.status <> 'awaiting_consent'
    and (:user_id::uuid is null or a.owner_id = :user_id::uuid or p.created_by = :user_id::uuid)
    and (:after::bigint is null or a.id < :after::bigint)
order by a.id desc limit :limit::bigint;

-- name: waiting_of_person
-- Such roots that await consent, the longest waiting first.
select a.*, p.definition_id, p.definition_version, g.name as agent_name, p.created_by, p.last_sequence, t.name as tenant_name
from agent_run a join process p on p.tenant_id = a.tenant_id and p.run_id = a.run_id
join definition g on g.tenant_id = p.tenant_id and g.definition_id = p.definition_id
join tenant t on t.tenant_id = a.tenant_id
where a.tenant_id = :tenant_id and a.parent_run is null and a.status = 'awaiting_consent'
    and (:user_id::uuid is null or a.owner_id = :user_id::uuid or p.created_by = :user_id::uuid)
    and (:after_since::timestamptz is null or (a.awaiting_since, a.id) > (:after_since::timestamptz, :after_id::bigint))
order by a.awaiting_since, a.id limit :limit::bigint;

-- name: tenant_of_token$
-- A token is looked for before the tenant is known; it finds, and that is all.
select tenant_id from agent_run where correlation_token = :token;

-- name: payload$
select c.piece from agent_run a join content_chunk c on c.tenant_id = a.tenant_id and c.run_id = a.run_id and c.content_id = a.payload_id
where a.tenant_id = :tenant_id and a.run_id = :run_id;

-- name: output$
select output from process where tenant_id = :tenant_id and run_id = :run_id and kind = 'AgentRun';

-- name: may_delegate$
select coalesce(jsonb_array_length(body #> '{loop,specialists}') > 0, false) from resolved_definition
where tenant_id = :tenant_id and run_id = :run_id;

-- name: root^
-- The run at whose owner a delegation's consents are asked: the topmost agent run.
select a.id, a.run_id, a.owner_id, a.channel, a.channel_id, a.reply_params, a.correlation_token, a.conversation_id
from folkmoot_delegation(:tenant_id, :run_id) d join agent_run a on a.tenant_id = :tenant_id and a.run_id = d.run_id
order by d.place desc limit 1;

-- name: is_within$
-- Whether a run is the one at the top, or was delegated by it, directly or not.
select exists (select from folkmoot_delegation(:tenant_id, :run_id) d where d.run_id = :top);

-- name: delegated
-- What a run delegated, directly or not, and has not ended, be it by way of runs that have; the deepest first, since a run below is locked
-- before one above it.
with recursive below as (
    select p.run_id, p.ended_at, 1 as depth from process p where p.tenant_id = :tenant_id and p.parent_id = :run_id and p.kind = 'AgentRun'
    union all
    select p.run_id, p.ended_at, b.depth + 1 from below b join process p on p.tenant_id = :tenant_id and p.parent_id = b.run_id
    where p.kind = 'AgentRun')
select run_id from below where ended_at is null order by depth desc, run_id;

-- name: delegated_calls$
-- How many tool calls a run and all that it delegated have made: what the newest payload counts.
select coalesce((c.piece::jsonb #>> '{budget,toolCalls,used}')::int, 0) from agent_run a
join content_chunk c on c.tenant_id = a.tenant_id and c.run_id = a.run_id and c.content_id = a.payload_id
where a.tenant_id = :tenant_id and a.run_id = :run_id;

-- name: delegated_result^
select status, output, failure_details, stopped_by from process
where tenant_id = :tenant_id and run_id = :run_id and parent_id = :parent_id and kind = 'AgentRun';

-- name: tidy_payloads!
-- Revisions that a newer one took the place of a day ago, so many at a time.
delete from content c using (
    select tenant_id, run_id, content_id from content
    where superseded_at < folkmoot_now() - interval '1 day' order by superseded_at limit 1000) old
where c.tenant_id = old.tenant_id and c.run_id = old.run_id and c.content_id = old.content_id;
