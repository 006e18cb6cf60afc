-- name: items_after
select * from item where tenant_id = :tenant_id and run_id = :run_id and sequence > :after order by sequence limit :limit;

-- name: items_between
select * from item where tenant_id = :tenant_id and run_id = :run_id and sequence > :after and sequence <= :upto order by sequence;

-- name: result_of_call$
select body ->> 'result' from item
where tenant_id = :tenant_id and run_id = :run_id and kind = 'toolResult' and body ->> 'tool_call_id' = :call_id;

-- name: noted_model_calls
-- What the engine and the adapters must know beside the items: calls under way, or failed and not answered since, and what a replay
-- needs of the others.
select model_call_id, step_key, ended_at, error_class, error_message, extract(epoch from not_before)::float8 as not_before, provider, model, replay,
    guessed_tokens, estimated_tokens, participant, purpose
from model_call
where tenant_id = :tenant_id and run_id = :run_id and voided_at is null
    and (ended_at is null or replay is not null or error_class is not null and step_key not in (
        select step_key from model_call
        where tenant_id = :tenant_id and run_id = :run_id and voided_at is null and ended_at is not null and error_class is null))
order by started_at, model_call_id;

-- name: prompted
-- Of each participant and model: up to where results were trimmed, the smallest prompt that was refused as too long, the newest that was counted.
with m as (
    select *, purpose not in ('compaction', 'route') and error_class is null and guessed_tokens > 0
              and not coalesce((usage ->> 'estimated')::boolean, true) as is_counted
    from model_call where tenant_id = :tenant_id and run_id = :run_id and voided_at is null)
select participant, model, max(trimmed_upto) as trimmed_upto,
    min(guessed_tokens) filter (where error_class = 'ContextTooLong' and purpose not in ('compaction', 'route')) as refused_tokens,
    min(guessed_tokens) filter (where error_class = 'ContextTooLong' and purpose = 'compaction') as refused_part,
    (array_agg(guessed_tokens order by started_at desc) filter (where is_counted))[1] as guessed_tokens,
    (array_agg(usage order by started_at desc) filter (where is_counted))[1] as usage
from m group by participant, model;

-- name: open_calls
-- Calls without a result, each with a person's word on it, and what that person is in the tenant now. The run's rows are read
-- first: by its statistics the planner may take all answered rows of the tenant for few.
with w as materialized (
    select pending_id, outcome, binding_hash, answer ->> 'reason' as reason, answered_by, answered_by_name from pending
    where tenant_id = :tenant_id and run_id = :run_id)
select c.call_id, c.begun_at, w.outcome, w.binding_hash, w.reason, w.answered_by_name, u.role, u.removed_at,
    -- what an agent asks is its owner's to answer, that of the run at the top, or an admin's: still so, when the call is to be made
    not exists (
        select from folkmoot_delegation(:tenant_id, :run_id) d join agent_run a on a.tenant_id = :tenant_id and a.run_id = d.run_id
        where u.role::text not in ('owner', 'admin') and a.owner_id <> w.answered_by
            and d.place = (select max(place) from folkmoot_delegation(:tenant_id, :run_id))) as is_asked
from call c
left join w on w.pending_id = c.call_id and w.outcome in ('Approved', 'Rejected')
left join app_user u on u.tenant_id = c.tenant_id and u.user_id = w.answered_by
where c.tenant_id = :tenant_id and c.run_id = :run_id and c.ended_at is null;

-- name: append_message^
-- A person's message: matches a status that is not final, leaves the claim alone, and raises the signal.
with p as (
    update process set last_sequence = last_sequence + 1, signal_number = signal_number + 1, updated_at = folkmoot_now()
    where tenant_id = :tenant_id and run_id = :run_id and ended_at is null
    returning tenant_id, run_id, last_sequence)
insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, author_id, thread_id, body)
select tenant_id, run_id, last_sequence, folkmoot_now(), :item_id, 'humanMessage', 'Human', :author_name, :author_id, :thread_id, :body from p
returning *;

-- name: usage_of_run
select model_call_id, turn_id, started_at, ended_at, participant, provider, model, credential, is_own_license, usage, service_tier, error_class
from model_call
where tenant_id = :tenant_id and run_id = :run_id and voided_at is null and (error_class is null or error_class <> all(:not_made::text[]))
order by started_at, model_call_id;
