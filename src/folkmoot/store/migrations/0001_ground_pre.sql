-- Tenants first in every key, so that a tenant's rows lie together and a policy or a distribution by tenant stays simple.

-- The one clock of all decisions. Only tests set the shift.
create table clock_shift (is_only boolean primary key default true check (is_only), shift interval not null default '0');
insert into clock_shift default values;
create function folkmoot_now() returns timestamptz language sql stable as
$$ select clock_timestamp() + shift from clock_shift $$;

create table tenant (
    tenant_id uuid primary key,
    name text not null unique check (length(name) between 1 and 200),
    created_at timestamptz not null
);

create table namespace (
    tenant_id uuid not null references tenant,
    namespace_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    created_at timestamptz not null,
    primary key (tenant_id, namespace_id),
    unique (tenant_id, name)
);

create table app_user (
    tenant_id uuid not null references tenant,
    user_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    is_owner boolean not null default false,
    created_at timestamptz not null,
    primary key (tenant_id, user_id),
    unique (tenant_id, name)
);

-- Looked up by hash before the tenant is known: the only index that does not begin with the tenant.
create table api_key (
    tenant_id uuid not null,
    key_id uuid not null,
    user_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    prefix text not null check (length(prefix) between 1 and 12),
    hash bytea not null unique check (length(hash) = 32),
    created_at timestamptz not null,
    expires_at timestamptz,
    revoked_at timestamptz,
    last_used_at timestamptz,
    primary key (tenant_id, key_id),
    foreign key (tenant_id, user_id) references app_user
);

create table idempotency_key (
    tenant_id uuid not null,
    user_id uuid not null,
    route text not null,
    key text not null check (length(key) between 1 and 200),
    body_hash bytea not null,
    result_id uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, user_id, route, key)
);

create type definition_kind as enum ('Agent', 'AiModel', 'Interaction');

create table definition (
    tenant_id uuid not null,
    definition_id uuid not null,
    kind definition_kind not null,
    namespace_id uuid not null,
    name text not null check (length(name) between 1 and 200),
    latest_version integer not null check (latest_version >= 1),
    created_by uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    deleted_at timestamptz,
    primary key (tenant_id, definition_id),
    foreign key (tenant_id, namespace_id) references namespace
);
create unique index definition_name on definition (tenant_id, kind, namespace_id, name) where deleted_at is null;

-- A version is never rewritten; only is_disabled changes.
create table definition_version (
    tenant_id uuid not null,
    definition_id uuid not null,
    number integer not null check (number >= 1),
    body jsonb not null,
    is_disabled boolean not null default false,
    created_by uuid not null,
    created_at timestamptz not null,
    primary key (tenant_id, definition_id, number),
    foreign key (tenant_id, definition_id) references definition
);

-- A row per worker and process start; of no tenant.
create table worker (
    worker_id uuid primary key,
    host text not null,
    pid integer not null,
    version text not null,
    is_apart boolean not null,
    started_at timestamptz not null,
    pinged_at timestamptz not null,
    lease_until timestamptz not null
);
create index worker_lease on worker (lease_until);

create type process_kind as enum ('Interaction', 'AgentRun', 'App');
create type run_status as enum (
    'New', 'Running', 'PendingHuman', 'PendingApproval', 'PendingSubInteractions', 'Completed', 'Failed', 'Stopped', 'TimedOut'
);

create table process (
    tenant_id uuid not null,
    run_id uuid not null,
    kind process_kind not null,
    namespace_id uuid not null,
    definition_id uuid not null,
    definition_version integer not null,
    created_by uuid not null,
    created_at timestamptz not null,
    parent_id uuid,
    parent_kind process_kind,
    tree_root_id uuid not null,
    swarm_root_id uuid not null,
    state_version integer not null,
    priority integer not null default 0,
    duration_auto_termination interval check (duration_auto_termination > '0'),
    response_json_schema text,
    tags text[] not null default '{}',
    search text not null default '',
    -- what changes at every append lies together, so that the write-ahead log carries little
    updated_at timestamptz not null,
    last_sequence bigint not null default 0,
    signal_number bigint not null default 0,
    is_suspect boolean not null default false,
    driver_errors integer not null default 0,
    status run_status not null default 'New',
    ready_at timestamptz,
    worker_id uuid,
    claim_number bigint not null default 0,
    claim_id uuid,
    stopped_by text,
    crash_count integer not null default 0,
    deadline_at timestamptz,
    started_at timestamptz,
    claimed_at timestamptz,
    pinged_at timestamptz,
    hostname text,
    execution_time interval not null default '0',
    ended_at timestamptz,
    output text,
    failure_details text,
    primary key (tenant_id, run_id),
    check ((status in ('Completed', 'Failed', 'Stopped', 'TimedOut')) = (ended_at is not null)),
    check (worker_id is null or status = 'Running'),
    check (claim_id is null or worker_id is not null),
    check (ready_at is null or (worker_id is null and ended_at is null)),
    check (output is null or status = 'Completed'),
    check (failure_details is null or status in ('Failed', 'TimedOut'))
) with (fillfactor = 60);
-- suspects first in the key, so that neither kind is searched through the other
create index process_claimable on process (is_suspect, priority desc, ready_at) where ready_at is not null;
create index process_of_worker on process (worker_id) where worker_id is not null;
create index process_deadline on process (deadline_at) where deadline_at is not null;
create index process_by_date on process (tenant_id, created_at desc, run_id desc);
create index process_by_status on process (tenant_id, status, created_at desc, run_id desc);
create index process_by_definition on process (tenant_id, definition_id, created_at desc, run_id desc);
create index process_by_namespace on process (tenant_id, namespace_id, created_at desc, run_id desc);
create index process_by_root on process (tenant_id, tree_root_id, created_at desc, run_id desc);
create index process_by_parent on process (tenant_id, parent_id, created_at desc, run_id desc) where parent_id is not null;
create index process_by_tag on process using gin (tags) where tags <> '{}';
-- Not partial: of a partial index's expression the planner does not know how common its values are.
create index process_by_text on process using gin (to_tsvector('simple', search));
-- Without many words counted a rare word is taken for a common one, and the newest runs are scanned for it.
alter index process_by_text alter column 1 set statistics 2000;

-- The closure a run started with, in a row of its own, so that no update of the run writes it again.
create table resolved_definition (
    tenant_id uuid not null,
    run_id uuid not null,
    body jsonb not null,
    primary key (tenant_id, run_id)
);

create type item_kind as enum (
    'agentMessage', 'agree', 'directQuestionAnswer', 'directQuestionAsk', 'disagree', 'humanMessage', 'injectedSystemMessage', 'noAction',
    'orchestratorMessage', 'solutionProposal', 'systemPrompt', 'toolCall', 'toolResult', 'voteProposal', 'summary'
);
create type author_kind as enum ('Agent', 'Human', 'Orchestrator');

create table item (
    tenant_id uuid not null,
    run_id uuid not null,
    sequence bigint not null check (sequence >= 1),
    created_at timestamptz not null,
    item_id uuid not null,
    turn_id uuid,
    model_call_id uuid,
    author_id uuid,
    kind item_kind not null,
    author_kind author_kind not null,
    author_name text not null,
    thread_id text not null,
    body jsonb not null,
    detail jsonb,
    primary key (tenant_id, run_id, sequence)
);

create table model_call (
    tenant_id uuid not null,
    run_id uuid not null,
    model_call_id uuid not null,
    turn_id uuid,
    started_at timestamptz not null,
    ended_at timestamptz,
    voided_at timestamptz,
    not_before timestamptz,
    step_key text not null,
    participant text not null,
    provider text not null,
    model text not null,
    credential text,
    usage jsonb,
    service_tier text,
    error_class text,
    error_message text,
    replay jsonb,
    primary key (tenant_id, run_id, model_call_id)
) with (fillfactor = 80);

create table call (
    tenant_id uuid not null,
    run_id uuid not null,
    call_id uuid not null,
    model_call_id uuid,
    operation text not null,
    operation_version integer not null default 1,
    arguments_hash bytea not null,
    idempotency_key text not null,
    asked_at timestamptz not null,
    begun_at timestamptz,
    attempts integer not null default 0,
    ended_at timestamptz,
    outcome text check (outcome in ('done', 'error', 'unknown')),
    primary key (tenant_id, run_id, call_id),
    check ((ended_at is null) = (outcome is null))
);
create index call_open on call (tenant_id, run_id) where ended_at is null;

-- What the fenced append takes, a row for each run, item and model call: one array of rows costs the server and the client
-- far less than an array for each column.
create type append_run as (
    ord integer, tenant_id uuid, run_id uuid, number bigint, claim_id uuid, signal bigint, firm integer, total integer, ends run_status,
    releases boolean, output text, failure text, ready_in double precision, errors integer
);
create type append_item as (
    ord integer, n integer, item_id uuid, kind item_kind, author_kind author_kind, author_name text, author_id uuid, thread_id text,
    turn_id uuid, model_call_id uuid, body jsonb, detail jsonb
);
create type append_model_call_begun as (
    ord integer, id uuid, turn_id uuid, step_key text, participant text, provider text, model text
);
create type append_model_call_ended as (
    ord integer, id uuid, usage jsonb, replay jsonb, tier text, error_class text, error_message text, wait double precision, is_firm boolean
);
