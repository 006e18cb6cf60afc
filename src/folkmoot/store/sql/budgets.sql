-- name: tenants
-- The tenants that have a budget now: read by each worker every few seconds, so that calls of all others cost no statement.
select tenant_id from tenant_budget where tokens_per_day is not null or money_per_day is not null;

-- name: limits^
select tokens_per_day, money_per_day from tenant_budget
where tenant_id = :tenant_id and (tokens_per_day is not null or money_per_day is not null);

-- name: save!
insert into tenant_budget (tenant_id, tokens_per_day, money_per_day, updated_at)
values (:tenant_id, :tokens, :money, folkmoot_now())
on conflict (tenant_id) do update set
    tokens_per_day = excluded.tokens_per_day, money_per_day = excluded.money_per_day, updated_at = excluded.updated_at;

-- name: lock!
-- Whoever reserves of a budget looks at what is left and takes of it before the next one looks. Until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('folkmoot.budget ' || :subject::text, 0));

-- name: day^
-- A tenant's budget, and what the calls that began today (UTC) have used and set aside. A lost call counts with what was set aside
-- for it, where that is more than the guess: its reply may have come to be.
select b.tokens_per_day, b.money_per_day, u.*, (date_trunc('day', folkmoot_now() at time zone 'UTC') + interval '1 day') at time zone 'UTC' as ends_at,
    folkmoot_now() as now
from (select :tenant_id::uuid as tenant_id) t left join tenant_budget b on b.tenant_id = t.tenant_id cross join lateral (
    select coalesce(sum(case when m.ended_at is not null then greatest(
                   m.input_tokens + m.cached_input_tokens + m.cache_write_tokens + m.output_tokens + m.reasoning_tokens,
                   case when m.error_class = :lost then m.reserved_tokens end) end), 0) as used_tokens,
           coalesce(sum(case when m.ended_at is not null then greatest(
                   m.cost, case when m.error_class = :lost then m.reserved_cost end) end), 0) as used_money,
           coalesce(sum(m.reserved_tokens) filter (where m.ended_at is null), 0) as reserved_tokens,
           coalesce(sum(m.reserved_cost) filter (where m.ended_at is null), 0) as reserved_money
    from model_call m
    where m.tenant_id = :tenant_id and m.voided_at is null
        and m.started_at >= (select date_trunc('day', folkmoot_now() at time zone 'UTC') at time zone 'UTC')
        -- says nothing new, but to the planner: a day is a small part of all
        and m.started_at < (select (date_trunc('day', folkmoot_now() at time zone 'UTC') + interval '1 day') at time zone 'UTC')) u;

-- name: subtree^
-- What the calls of a run and of all below it have used and set aside, in the same way. A call that was never made is no call.
with recursive below as (
    select run_id from process where tenant_id = :tenant_id and run_id = :top
    union all
    select p.run_id from below b join process p on p.tenant_id = :tenant_id and p.parent_id = b.run_id)
select count(*) filter (where m.ended_at is not null and (m.error_class is null or m.error_class <> all(:not_made::text[]))) as used_calls,
       count(*) filter (where m.ended_at is null and m.reserved_tokens is not null) as reserved_calls,
       coalesce(sum(case when m.ended_at is not null then greatest(
                   m.input_tokens + m.cached_input_tokens + m.cache_write_tokens + m.output_tokens + m.reasoning_tokens,
                   case when m.error_class = :lost then m.reserved_tokens end) end), 0) as used_tokens,
           coalesce(sum(case when m.ended_at is not null then greatest(
                   m.cost, case when m.error_class = :lost then m.reserved_cost end) end), 0) as used_money,
           coalesce(sum(m.reserved_tokens) filter (where m.ended_at is null), 0) as reserved_tokens,
           coalesce(sum(m.reserved_cost) filter (where m.ended_at is null), 0) as reserved_money
from below b join model_call m on m.tenant_id = :tenant_id and m.run_id = b.run_id
where m.voided_at is null;

-- name: call^
select coalesce(greatest(m.guessed_tokens, m.estimated_tokens), 0) as prompt_tokens, p.swarm_root_id, folkmoot_now() as now
from model_call m join process p on p.tenant_id = m.tenant_id and p.run_id = m.run_id
where m.tenant_id = :tenant_id and m.run_id = :run_id and m.model_call_id = :model_call_id;

-- name: reserve!
-- Sets something aside for a call that is about to be sent.
update model_call set reserved_tokens = :tokens, reserved_cost = :money
where tenant_id = :tenant_id and run_id = :run_id and model_call_id = :model_call_id and ended_at is null;
