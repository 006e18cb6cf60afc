-- name: items_after
select * from item where tenant_id = :tenant_id and run_id = :run_id and sequence > :after order by sequence limit :limit;

-- name: items_between
select * from item where tenant_id = :tenant_id and run_id = :run_id and sequence > :after and sequence <= :upto order by sequence;

-- name: unsettled_model_calls
-- Model calls under way or failed: what the engine must know beside the items.
select model_call_id, step_key, participant, started_at, ended_at, error_class, error_message, extract(epoch from not_before)::float8 as not_before
from model_call where tenant_id = :tenant_id and run_id = :run_id and voided_at is null and (ended_at is null or error_class is not null)
order by started_at, model_call_id;

-- name: replays
select model_call_id, provider, model, replay from model_call
where tenant_id = :tenant_id and run_id = :run_id and replay is not null;

-- name: open_calls
select call_id, begun_at from call where tenant_id = :tenant_id and run_id = :run_id and ended_at is null;

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
select model_call_id, turn_id, started_at, ended_at, participant, provider, model, credential, usage, service_tier, error_class, voided_at
from model_call where tenant_id = :tenant_id and run_id = :run_id and voided_at is null order by started_at, model_call_id;
