-- A provider's count as one that can be stored and summed, whatever it says; null where nothing was told.
create function folkmoot_tokens(usage jsonb, kind text) returns bigint language sql immutable as $$
    select case when usage is not null then least(greatest(coalesce((usage ->> kind)::numeric, 0), 0), 9007199254740991)::bigint end
$$;

-- What calls used, in columns of their own, so that a million of them are summed in less than a second.
alter table model_call
    add column input_tokens bigint generated always as (folkmoot_tokens(usage, 'input')) stored,
    add column cached_input_tokens bigint generated always as (folkmoot_tokens(usage, 'cached_input')) stored,
    add column cache_write_tokens bigint generated always as (folkmoot_tokens(usage, 'cache_write')) stored,
    add column output_tokens bigint generated always as (folkmoot_tokens(usage, 'output')) stored,
    add column reasoning_tokens bigint generated always as (folkmoot_tokens(usage, 'reasoning')) stored,
    add column is_estimated boolean generated always as (coalesce((usage ->> 'estimated')::boolean, false)) stored,
    -- a column, so that the planner knows how many days there are
    add column day date generated always as ((started_at at time zone 'UTC')::date) stored,
    -- what was set aside of a budget before the call was sent; null where none was set
    add column reserved_tokens bigint check (reserved_tokens >= 0),
    add column reserved_cost numeric check (reserved_cost >= 0);
-- Partial, so that it is no way to a single call: on a table that is small when plans are made, tenant alone would look as good as the whole key.
create index model_call_by_date on model_call (tenant_id, started_at) where voided_at is null;

-- What a tenant may use in a day (UTC). Null: no limit.
create table tenant_budget (
    tenant_id uuid primary key references tenant,
    tokens_per_day bigint check (tokens_per_day >= 0),
    money_per_day numeric check (money_per_day >= 0),
    updated_at timestamptz not null
);
