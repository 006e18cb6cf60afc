-- What waits for a person: the pause that opens it, the answer that closes it, and what is told outside of both.

create type pending_kind as enum ('Approval', 'Vote', 'Question', 'Turn');
create type pending_outcome as enum ('Answered', 'Approved', 'Rejected', 'Expired', 'Stopped');

-- Its id is that of the call, the ballot, the question or the turn that it is about: asked again after a crash it is the same row.
create table pending (
    tenant_id uuid not null,
    run_id uuid not null,
    pending_id uuid not null,
    kind pending_kind not null,
    asked_at timestamptz not null,
    expires_at timestamptz,
    -- what a person is shown; of an approval the call, with what comes after it
    card jsonb not null,
    -- of an approval: operation, version, server and final arguments
    binding_hash bytea,
    outcome pending_outcome,
    -- what was answered, as it is compared with a second answer
    answer jsonb,
    answered_at timestamptz,
    answered_by uuid,
    answered_by_name text,
    channel text,
    primary key (tenant_id, run_id, pending_id),
    check ((outcome is null) = (answered_at is null)),
    check ((kind = 'Approval') = (binding_hash is not null)),
    check (outcome is null or outcome in ('Expired', 'Stopped') or answered_by is not null)
);
create index pending_open on pending (tenant_id, asked_at, pending_id) where outcome is null;
create index pending_by_date on pending (tenant_id, asked_at desc, pending_id desc);
create index pending_by_outcome on pending (tenant_id, outcome, asked_at desc, pending_id desc) where outcome is not null;
-- what a feed of the inbox missed
create index pending_by_answer on pending (tenant_id, answered_at) where outcome is not null;
create index pending_due on pending (expires_at) where outcome is null and expires_at is not null;

alter table process add column duration_human_timeout interval check (duration_human_timeout > '0');
-- what the run waits for now; a claim clears it
alter table process add column pending_id uuid;
alter table process add column before_timeout_status run_status;
alter table process add constraint process_timeout check (before_timeout_status is null or before_timeout_status in ('PendingHuman', 'PendingApproval'));
alter table process add constraint process_pending check (pending_id is null or status in ('PendingHuman', 'PendingApproval') or ended_at is not null);

-- Endpoints of programs that are told of what happens. `sealed_secret` signs the messages.
create table webhook (
    tenant_id uuid not null,
    webhook_id uuid not null,
    url text not null,
    kinds text[] not null,
    sealed_secret bytea not null,
    -- The secret before this one signs beside it for a while, so that a receiver can change over without losing a message.
    previous_secret bytea,
    previous_until timestamptz,
    created_by uuid not null,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    disabled_at timestamptz,
    primary key (tenant_id, webhook_id),
    check ((previous_secret is null) = (previous_until is null))
);

-- Messages to the outside, written with the change that causes them. `body` is sent as it is.
create table outbox (
    tenant_id uuid not null,
    message_id uuid not null,
    webhook_id uuid not null,
    kind text not null,
    body jsonb not null,
    created_at timestamptz not null,
    ready_at timestamptz,
    attempts integer not null default 0,
    delivered_at timestamptz,
    given_up_at timestamptz,
    last_error text,
    primary key (tenant_id, message_id),
    foreign key (tenant_id, webhook_id) references webhook on delete cascade,
    check (ready_at is null or (delivered_at is null and given_up_at is null))
);
-- of each endpoint what is to be sent next
create index outbox_ready on outbox (tenant_id, webhook_id, ready_at) where ready_at is not null;
-- what was settled and can go
create index outbox_settled on outbox (created_at) where ready_at is null;
create index outbox_by_webhook on outbox (tenant_id, webhook_id, created_at desc, message_id desc);

-- A moment as the API writes it, in what programs are told.
create function folkmoot_told(at timestamptz) returns text language sql stable as $$
    select to_char(at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"0Z"')
$$;
-- What became of a thing that waited, as the API's receipt says it.
create function folkmoot_decided(w pending) returns jsonb language sql stable as $$
    select jsonb_build_object('type', 'approval.decided', 'timestamp', folkmoot_told(w.answered_at), 'data', jsonb_build_object(
        'id', w.pending_id, 'runId', w.run_id, 'kind', w.kind, 'status', w.outcome, 'agree', w.answer -> 'agree',
        'text', coalesce(w.answer -> 'answer', w.answer -> 'message'), 'passed', w.answer -> 'pass',
        'argumentsHash', w.answer -> 'argumentsHash', 'reason', w.answer -> 'reason', 'dateAnswered', folkmoot_told(w.answered_at),
        'answeredById', w.answered_by, 'answeredByName', w.answered_by_name, 'channel', w.channel))
$$;

-- What is too large for a conversation, in pieces.
create table content (
    tenant_id uuid not null,
    run_id uuid not null,
    content_id uuid not null,
    size bigint not null check (size >= 0),
    characters bigint not null check (characters >= 0),
    created_at timestamptz not null,
    -- an item was found that refers to it
    is_referred_to boolean not null default false,
    primary key (tenant_id, run_id, content_id)
);
create index content_to_sweep on content (created_at) where not is_referred_to;
create table content_chunk (
    tenant_id uuid not null,
    run_id uuid not null,
    content_id uuid not null,
    -- each piece but the last has the same number of characters, so that any of them is found by where it begins
    number integer not null check (number >= 0),
    piece text not null,
    primary key (tenant_id, run_id, content_id, number),
    foreign key (tenant_id, run_id, content_id) references content on delete cascade
);

-- What the fenced append takes beside: the waiting status a pause leads to, and what it asks a person.
alter type append_run add attribute pauses run_status;
alter type append_run add attribute pending_id uuid;
-- `told`: the card as programs are shown it.
create type append_pending as (ord integer, id uuid, kind pending_kind, card jsonb, hash bytea, told jsonb);
