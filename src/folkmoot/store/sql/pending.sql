-- name: lock_run^
-- Whoever answers, stops or pauses a run locks its row first. An App run asks nobody, and an agent run's owner is asked by way of its consents. What is read after this is what holds.
select status, ended_at is not null as has_ended from process
where tenant_id = :tenant_id and run_id = :run_id and kind = :run_type::process_kind for update;

-- name: find^
select w.*, folkmoot_card(w) as shown_card, coalesce(w.expires_at <= folkmoot_now(), false) as is_due, p.tree_root_id
from pending w join process p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
where w.tenant_id = :tenant_id and w.run_id = :run_id and w.pending_id = :pending_id;

-- name: open_ones
-- What a run waits for now, in the order it was asked. As in all that asks for one run, num_nulls keeps the planner from the index
-- of everything open: while its statistics are from before a rush it takes that one for empty, and reads it to its end each time.
select w.*, folkmoot_card(w) as shown_card, coalesce(w.expires_at <= folkmoot_now(), false) as is_due, p.tree_root_id
from pending w join process p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
where w.tenant_id = :tenant_id and w.run_id = :run_id and num_nulls(w.outcome) = 1
order by w.asked_at, w.pending_id;

-- name: is_of_run$
-- Whether a run's conversation knows a vote, solution, question or turn of this id, though nobody is asked about it.
select exists (
    select from item where tenant_id = :tenant_id and run_id = :run_id
        and (turn_id = :pending_id
             or (kind in ('voteProposal', 'solutionProposal', 'directQuestionAsk')
                 and :pending_text in (body ->> 'vote_id', body ->> 'solution_id', body ->> 'question_id'))));

-- name: settle^
-- An answer, within the transaction that has locked the run: once, while there is time and the run has not ended. Its item, if it
-- has one, follows what is there; the run is woken and keeps its status, for only a claim sets Running.
with t as materialized (select folkmoot_now() as now),
a as (
    update pending w set outcome = :outcome, answer = :answer, answered_at = t.now, answered_by = :answered_by,
        answered_by_name = :answered_by_name, channel = :channel
    from t
    where w.tenant_id = :tenant_id and w.run_id = :run_id and w.pending_id = :pending_id and num_nulls(w.outcome) = 1
        and (w.expires_at is null or w.expires_at > t.now)
        and exists (select from process p where p.tenant_id = :tenant_id and p.run_id = :run_id and p.ended_at is null)
        -- what delegated it was not asked to stop: the stop may not have come down to it yet
        and not exists (
            select from folkmoot_delegation(:tenant_id, :run_id) d join process q on q.tenant_id = :tenant_id and q.run_id = d.run_id
            where d.place > 0 and (q.stopped_by is not null or q.ended_at is not null))
    returning w.*),
p as (
    update process p set
        signal_number = p.signal_number + 1, last_sequence = p.last_sequence + :items, updated_at = t.now,
        ready_at = case when p.worker_id is null then least(p.ready_at, t.now) else p.ready_at end
    from a cross join t where p.tenant_id = a.tenant_id and p.run_id = a.run_id
    returning p.last_sequence, p.tree_root_id),
o as (
    insert into outbox (tenant_id, message_id, webhook_id, kind, body, created_at, ready_at)
    select a.tenant_id, folkmoot_new_id(), w.webhook_id, 'approval.decided', folkmoot_decided(row(a.*)::pending), t.now, t.now
    from a cross join t join webhook w on w.tenant_id = a.tenant_id
    where w.disabled_at is null and 'approval.decided' = any(w.kinds)
    for key share of w) -- one that is being deleted is waited for, and told nothing
select a.*, folkmoot_card(row(a.*)::pending) as shown_card, p.last_sequence, p.tree_root_id from a cross join p;

-- name: insert_item^
insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, author_id, thread_id, turn_id, body, detail)
values (:tenant_id, :run_id, :sequence, folkmoot_now(), :item_id, :kind, :author_kind, :author_name, :author_id, :thread_id, :turn_id,
        :body, :detail)
returning *;

-- name: stop
-- A run's stop closes what it waits for, in the transaction that asked for the stop and has locked the run's row.
with t as materialized (select folkmoot_now() as now),
a as (
    update pending w set outcome = 'Stopped', answered_at = t.now, answered_by = :stopped_by, answered_by_name = :stopped_by_name,
        channel = :channel
    from t where w.tenant_id = :tenant_id and w.run_id = :run_id and num_nulls(w.outcome) = 1
    returning w.*),
o as (
    insert into outbox (tenant_id, message_id, webhook_id, kind, body, created_at, ready_at)
    select a.tenant_id, folkmoot_new_id(), w.webhook_id, 'approval.decided', folkmoot_decided(row(a.*)::pending), t.now, t.now
    from a cross join t join webhook w on w.tenant_id = a.tenant_id
    where w.disabled_at is null and 'approval.decided' = any(w.kinds)
    for key share of w) -- one that is being deleted is waited for, and told nothing
select a.pending_id from a;

-- name: waiting_keys
-- What waits, the longest first. It is planned anew for the values at hand, so that a filter that is null is gone.
select run_id, pending_id from pending
where tenant_id = :tenant_id and outcome is null
    and (:kind::pending_kind is null or kind = :kind::pending_kind)
    and (:run_id::uuid is null or run_id = :run_id::uuid)
    and (:root::uuid is null or run_id in (
        select p.run_id from process p where p.tenant_id = :tenant_id and p.tree_root_id = :root::uuid))
    and (:below::uuid is null or run_id = any(array(
        with recursive below as (
            select q.run_id from process q where q.tenant_id = :tenant_id and q.run_id = :below::uuid
            union all
            select c.run_id from below b join process c on c.tenant_id = :tenant_id and c.parent_id = b.run_id)
        select b.run_id from below b)))
    and (:after_date::timestamptz is null or (asked_at, pending_id) > (:after_date::timestamptz, :after_id::uuid))
order by asked_at, pending_id limit :limit::bigint;

-- name: page_keys
-- The same of what became of things, or of both, the newest first.
select run_id, pending_id from pending
where tenant_id = :tenant_id
    and (:outcome::pending_outcome is null or outcome = :outcome::pending_outcome)
    and (:kind::pending_kind is null or kind = :kind::pending_kind)
    and (:run_id::uuid is null or run_id = :run_id::uuid)
    and (:root::uuid is null or run_id in (
        select p.run_id from process p where p.tenant_id = :tenant_id and p.tree_root_id = :root::uuid))
    and (:below::uuid is null or run_id = any(array(
        with recursive below as (
            select q.run_id from process q where q.tenant_id = :tenant_id and q.run_id = :below::uuid
            union all
            select c.run_id from below b join process c on c.tenant_id = :tenant_id and c.parent_id = b.run_id)
        select b.run_id from below b)))
    and (:after_date::timestamptz is null or (asked_at, pending_id) < (:after_date::timestamptz, :after_id::uuid))
order by asked_at desc, pending_id desc limit :limit::bigint;

-- name: counts
select kind, count(*) from pending where tenant_id = :tenant_id and outcome is null group by kind;

-- name: open_keys
-- Which things wait, the longest first, no more than a feed shows.
select pending_id, run_id, asked_at from pending where tenant_id = :tenant_id and outcome is null
order by asked_at, pending_id limit :limit;

-- name: moment$
select folkmoot_now();

-- name: entries
-- The rows of these keys.
select w.*, folkmoot_card(w) as shown_card, d.name as interaction_name, n.name as namespace_name, p.tree_root_id, a.id as agent_run
from unnest(:run_ids::uuid[], :pending_ids::uuid[]) as k(run_id, pending_id)
join pending w on w.tenant_id = :tenant_id and w.run_id = k.run_id and w.pending_id = k.pending_id
join process p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
join namespace n on n.tenant_id = p.tenant_id and n.namespace_id = p.namespace_id
left join agent_run a on a.tenant_id = w.tenant_id and a.run_id = w.run_id
order by w.asked_at, w.pending_id;

-- name: settled_since
-- What was closed after a moment, for a feed that goes on from there.
select w.*, folkmoot_card(row(w.*)::pending) as shown_card, d.name as interaction_name, n.name as namespace_name, p.tree_root_id, a.id as agent_run
from (
    select * from pending where tenant_id = :tenant_id and outcome is not null
        and (answered_at, pending_id) > (:since::timestamptz, :after_id::uuid)
    order by answered_at, pending_id limit :limit::bigint
) w
join process p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
join definition d on d.tenant_id = p.tenant_id and d.definition_id = p.definition_id
join namespace n on n.tenant_id = p.tenant_id and n.namespace_id = p.namespace_id
left join agent_run a on a.tenant_id = w.tenant_id and a.run_id = w.run_id
order by w.answered_at, w.pending_id;
