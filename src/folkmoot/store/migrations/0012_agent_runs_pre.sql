-- Agent runs: the row of pointers beside the run, conversations between people and agents, what goes out over channels and what comes in.

create type agent_run_status as enum ('running', 'awaiting_consent', 'completed', 'failed', 'expired');
create type agent_run_phase as enum ('gather', 'plan', 'act', 'verify');
create type chat_item_kind as enum ('message', 'consent');
create type consent_status as enum ('pending', 'approved', 'declined', 'expired', 'cancelled');

-- A chat between a person and agents. Its items may change, unlike those of a run's conversation.
create table conversation (
    tenant_id uuid not null references tenant,
    conversation_id uuid not null,
    created_by uuid not null,
    created_at timestamptz not null,
    last_number bigint not null default 0,
    primary key (tenant_id, conversation_id)
);

-- `status` and what stands beside it of a consent are moved by the kernel's own moves: a pause, a claim, an end, an expiry.
create table agent_run (
    tenant_id uuid not null,
    run_id uuid not null,
    id bigint generated always as identity,
    owner_id uuid not null,
    status agent_run_status not null default 'running',
    current_phase agent_run_phase not null default 'gather',
    channel text,
    -- the definition of its channel; null: the server's own pages
    channel_id uuid,
    reply_params text,
    correlation_token text not null check (length(correlation_token) between 20 and 100),
    conversation_id uuid,
    -- of the consent that is awaited, or was awaited last
    chat_item_id uuid,
    pending_tool_id uuid,
    pending_specialist text,
    parent_run bigint,
    awaiting_since timestamptz,
    expires_at timestamptz,
    claimed_at timestamptz,
    completed_at timestamptz,
    last_error text check (length(last_error) <= 2000),
    -- the payload's newest revision, and where it is kept; 0: there is none yet
    payload_revision bigint not null default 0,
    payload_id uuid,
    created_at timestamptz not null,
    modified_at timestamptz not null,
    primary key (tenant_id, run_id),
    foreign key (tenant_id, run_id) references process,
    check (completed_at is null or status in ('completed', 'failed', 'expired')),
    check (status not in ('completed', 'failed') or completed_at is not null),
    check (status = 'awaiting_consent' or (pending_tool_id is null and awaiting_since is null) or status = 'expired'),
    check (status <> 'awaiting_consent' or num_nulls(chat_item_id, pending_tool_id, awaiting_since, conversation_id) = 0),
    check (last_error is null or status in ('failed', 'expired'))
);
create unique index agent_run_id on agent_run (tenant_id, id);
-- an answer that carries it is looked for within its channel's tenant; no two are alike anywhere
create unique index agent_run_token on agent_run (correlation_token);
create index agent_run_by_date on agent_run (tenant_id, id desc);
create index agent_run_by_status on agent_run (tenant_id, status, id desc);
create index agent_run_by_conversation on agent_run (tenant_id, conversation_id) where conversation_id is not null;

create table chat_item (
    tenant_id uuid not null,
    chat_item_id uuid not null,
    conversation_id uuid not null,
    number bigint not null check (number >= 1),
    kind chat_item_kind not null,
    author_name text not null,
    author_id uuid,
    created_at timestamptz not null,
    updated_at timestamptz not null,
    run_id uuid,
    text text,
    -- a consent block: the call and its final arguments stand here, and so does whether it was executed
    call_id uuid,
    card jsonb,
    arguments_hash bytea,
    asked_by text,
    status consent_status,
    expires_at timestamptz,
    decided_at timestamptz,
    decided_by uuid,
    decided_by_name text,
    decided_over text,
    reason text,
    executed_at timestamptz,
    -- of the request's secret, SHA-256; who has it may answer where the channel cannot prove who speaks, once
    secret_hash bytea,
    secret_tries integer not null default 0 check (secret_tries between 0 and 10),
    secret_used_at timestamptz,
    primary key (tenant_id, chat_item_id),
    foreign key (tenant_id, conversation_id) references conversation,
    unique (tenant_id, conversation_id, number),
    check ((kind = 'message') = (text is not null)),
    check (case when kind = 'consent' then num_nulls(run_id, call_id, card, arguments_hash, asked_by, status) = 0
        else num_nonnulls(call_id, card, arguments_hash, asked_by, status, secret_hash, executed_at) = 0 end)
);
create unique index chat_item_of_call on chat_item (tenant_id, run_id, call_id) where call_id is not null;

-- What goes to the outside over channels, written with the change that it tells of.
create table channel_message (
    tenant_id uuid not null,
    message_id uuid not null,
    channel_id uuid not null,
    run_id uuid not null,
    chat_item_id uuid,
    kind text not null,
    body jsonb not null,
    -- the request's secret, until the message is delivered or given up
    sealed_secret bytea,
    created_at timestamptz not null,
    ready_at timestamptz,
    attempts integer not null default 0,
    delivered_at timestamptz,
    given_up_at timestamptz,
    last_error text,
    -- by what the channel finds the message again
    reference text,
    primary key (tenant_id, message_id),
    check (ready_at is null or (delivered_at is null and given_up_at is null)),
    check (sealed_secret is null or ready_at is not null)
);
create index channel_message_ready on channel_message (tenant_id, channel_id, ready_at) where ready_at is not null;
create index channel_message_settled on channel_message (created_at) where ready_at is null;
create index channel_message_by_item on channel_message (tenant_id, chat_item_id) where chat_item_id is not null;
create index channel_message_of_run on channel_message (tenant_id, run_id, created_at, message_id);

-- What has come in, by its id in its channel, so that what is sent again counts once (B71). `outcome`: what it was answered.
create table inbound_message (
    tenant_id uuid not null,
    channel_id uuid not null,
    inbound_hash bytea not null check (length(inbound_hash) = 32),
    received_at timestamptz not null,
    outcome jsonb,
    primary key (tenant_id, channel_id, inbound_hash)
);
create index inbound_message_old on inbound_message (received_at);

-- The agent runs from one up to its root, itself first. `place` counts from 0.
create function folkmoot_delegation(tenant uuid, run uuid) returns table (run_id uuid, place integer) language sql stable as $$
    with recursive up as (
        select p.run_id, p.parent_id, p.parent_kind, 0 as place from process p where p.tenant_id = tenant and p.run_id = run
        union all
        select p.run_id, p.parent_id, p.parent_kind, up.place + 1
        from up join process p on p.tenant_id = tenant and p.run_id = up.parent_id
        where up.parent_kind = 'AgentRun')
    select up.run_id, up.place from up
$$;

-- The next item of a conversation: its number. The conversation's row is locked until the transaction ends.
create function folkmoot_next_chat_number(tenant uuid, spoken_in uuid) returns bigint language sql as $$
    update conversation set last_number = last_number + 1 where tenant_id = tenant and conversation_id = spoken_in returning last_number
$$;

-- A message over the channel of a run's root; none where the root is reached by the server's own pages.
create function folkmoot_tell_owner(
    tenant uuid, run uuid, message uuid, item uuid, message_kind text, told jsonb, sealed bytea, at timestamptz
) returns void language sql as $$
    insert into channel_message (tenant_id, message_id, channel_id, run_id, chat_item_id, kind, body, sealed_secret, created_at, ready_at)
    select tenant, message, a.channel_id, a.run_id, item, message_kind, told, sealed, at, at
    from folkmoot_delegation(tenant, run) d join agent_run a on a.tenant_id = tenant and a.run_id = d.run_id
    where a.channel_id is not null
        and d.place = (select max(place) from folkmoot_delegation(tenant, run))
$$;

-- A run pauses for its owner's consent, within the transaction of its pause: the chat item, the root's request over its channel, and all
-- runs of the delegation. Asked again, after a wake for nothing, it is the same item, and nothing is sent twice. While a specialist waits for a
-- person nobody above it is at work: their time stops, as its own does.
create function folkmoot_await_consent(
    tenant uuid, run uuid, call uuid, item uuid, new_conversation uuid, shown jsonb, hash bytea, asking text, secret bytea, sealed bytea, message uuid
) returns uuid language plpgsql as $$
declare
    t timestamptz := folkmoot_now();
    root agent_run;
    conversation_of uuid;
    found uuid;
    until timestamptz;
    is_new boolean;
begin
    select a.* into root from folkmoot_delegation(tenant, run) d join agent_run a on a.tenant_id = tenant and a.run_id = d.run_id
    order by d.place desc limit 1;
    select w.expires_at into until from pending w where w.tenant_id = tenant and w.run_id = run and w.pending_id = call;
    select c.chat_item_id, c.conversation_id into found, conversation_of from chat_item c
    where c.tenant_id = tenant and c.run_id = run and c.call_id = call;
    is_new := found is null;
    if is_new then
        found := item;
        conversation_of := coalesce(root.conversation_id, new_conversation);
        if root.conversation_id is null then
            insert into conversation (tenant_id, conversation_id, created_by, created_at) values (tenant, conversation_of, root.owner_id, t);
        end if;
        insert into chat_item (tenant_id, chat_item_id, conversation_id, number, kind, author_name, created_at, updated_at, run_id, call_id, card,
                               arguments_hash, asked_by, status, expires_at, secret_hash)
        values (tenant, item, conversation_of, folkmoot_next_chat_number(tenant, conversation_of), 'consent', asking, t, t, run, call, shown,
                hash, asking, 'pending', until, secret);
        perform folkmoot_tell_owner(tenant, run, message, item, 'consent.requested', '{}', sealed, t);
    end if;
    update agent_run a set
        status = 'awaiting_consent', chat_item_id = found, pending_tool_id = call, awaiting_since = t, expires_at = until, modified_at = t,
        conversation_id = coalesce(a.conversation_id, conversation_of),
        pending_specialist = (
            select g.name from folkmoot_delegation(tenant, run) below
            join process p on p.tenant_id = tenant and p.run_id = below.run_id
            join definition g on g.tenant_id = tenant and g.definition_id = p.definition_id
            where below.place = d.place - 1)
    from folkmoot_delegation(tenant, run) d
    where a.tenant_id = tenant and a.run_id = d.run_id and a.status in ('running', 'awaiting_consent');
    update process p set execution_time = p.execution_time + (t - p.awaits_since), awaits_since = null, ready_at = case when p.ready_at <= t then p.ready_at end
    from folkmoot_delegation(tenant, run) d
    where p.tenant_id = tenant and p.run_id = d.run_id and d.place > 0 and p.status = 'PendingSubInteractions' and p.awaits_since is not null;
    return found;
end $$;

-- A claim takes a run out of awaiting consent, and with it all above it that awaited the same. Their time goes on.
create function folkmoot_agent_run_claimed() returns trigger language plpgsql as $$
declare
    own agent_run;
begin
    update agent_run set claimed_at = new.claimed_at, modified_at = new.claimed_at where tenant_id = new.tenant_id and run_id = new.run_id
    returning * into own;
    if own.status <> 'awaiting_consent' then
        return null;
    end if;
    update agent_run a set
        status = 'running', pending_tool_id = null, pending_specialist = null, awaiting_since = null, expires_at = null, modified_at = new.claimed_at
    from folkmoot_delegation(new.tenant_id, new.run_id) d
    where a.tenant_id = new.tenant_id and a.run_id = d.run_id and a.status = 'awaiting_consent' and a.chat_item_id = own.chat_item_id;
    update process p set
        awaits_since = new.claimed_at,
        ready_at = coalesce(p.ready_at, new.claimed_at + (p.duration_auto_termination - p.execution_time))
    from (select q.tenant_id, q.run_id from folkmoot_delegation(new.tenant_id, new.run_id) d
          join process q on q.tenant_id = new.tenant_id and q.run_id = d.run_id and d.place > 0
          where q.status = 'PendingSubInteractions' and q.awaits_since is null
          order by d.place
          -- one that is being claimed itself counts its own time
          for update of q skip locked) above
    where p.tenant_id = above.tenant_id and p.run_id = above.run_id;
    return null;
end $$;
create trigger agent_run_claimed after update of claim_number on process for each row
    when (new.kind = 'AgentRun' and new.claim_number <> old.claim_number)
    execute function folkmoot_agent_run_claimed();

-- The end of an agent run, by whatever door: its own status, the answer in the conversation behind it, and a word to its owner.
create function folkmoot_agent_run_ended() returns trigger language plpgsql as $$
declare
    own agent_run;
    said text;
begin
    said := case new.status
        when 'Completed' then new.output
        when 'Stopped' then 'cancelled by ' || coalesce(new.stopped_by, 'somebody')
        else new.failure_details end;
    update agent_run set
        status = case new.status when 'Completed' then 'completed' when 'TimedOut' then 'expired' else 'failed' end::agent_run_status,
        completed_at = new.ended_at, modified_at = new.ended_at, pending_tool_id = null, pending_specialist = null, awaiting_since = null,
        expires_at = null, last_error = case when new.status <> 'Completed' then left(said, 2000) end
    where tenant_id = new.tenant_id and run_id = new.run_id
    returning * into own;
    if own.parent_run is not null then
        return null;
    end if;
    if own.conversation_id is not null then
        insert into chat_item (tenant_id, chat_item_id, conversation_id, number, kind, author_name, created_at, updated_at, run_id, text)
        select new.tenant_id, folkmoot_new_id(), own.conversation_id, folkmoot_next_chat_number(new.tenant_id, own.conversation_id), 'message',
               coalesce(g.name, 'Agent'), new.ended_at, new.ended_at, new.run_id, coalesce(said, '')
        from definition g where g.tenant_id = new.tenant_id and g.definition_id = new.definition_id;
    end if;
    if new.status <> 'TimedOut' then -- that was told of when the consent expired
        perform folkmoot_tell_owner(
            new.tenant_id, new.run_id, folkmoot_new_id(), null, 'run.ended',
            jsonb_build_object('status', own.status, 'text', coalesce(said, '')), null, new.ended_at);
    end if;
    return null;
end $$;
create trigger agent_run_ended after update of ended_at on process for each row
    when (new.kind = 'AgentRun' and old.ended_at is null and new.ended_at is not null)
    execute function folkmoot_agent_run_ended();

-- What became of a consent, by whatever door. One that has expired ends all runs of the delegation together, and is announced once.
create function folkmoot_consent_settled() returns trigger language plpgsql as $$
declare
    item chat_item;
    t timestamptz := new.answered_at;
begin
    update chat_item set
        status = case new.outcome when 'Approved' then 'approved' when 'Rejected' then 'declined' when 'Expired' then 'expired'
            else 'cancelled' end::consent_status,
        decided_at = t, decided_by = new.answered_by, decided_by_name = new.answered_by_name, decided_over = new.channel,
        reason = new.answer ->> 'reason', updated_at = t
    where tenant_id = new.tenant_id and run_id = new.run_id and call_id = new.pending_id
    returning * into item;
    if not found then
        return null;
    end if;
    if new.outcome = 'Expired' then
        update process p set before_timeout_status = 'PendingApproval', ready_at = t, signal_number = p.signal_number + 1, updated_at = t
        from folkmoot_delegation(new.tenant_id, new.run_id) d
        where p.tenant_id = new.tenant_id and p.run_id = d.run_id and d.place > 0 and p.ended_at is null and p.worker_id is null;
        update agent_run a set status = 'expired', modified_at = t
        from folkmoot_delegation(new.tenant_id, new.run_id) d
        where a.tenant_id = new.tenant_id and a.run_id = d.run_id and a.status = 'awaiting_consent' and a.chat_item_id = item.chat_item_id;
    end if;
    perform folkmoot_tell_owner(
        new.tenant_id, new.run_id, folkmoot_new_id(), item.chat_item_id, case when new.outcome = 'Expired' then 'consent.expired' else 'consent.decided' end,
        '{}', null, t);
    return null;
end $$;
create trigger consent_settled after update of outcome on pending for each row
    when (new.kind = 'Approval' and old.outcome is null and new.outcome is not null)
    execute function folkmoot_consent_settled();

-- A card as people are shown it: of a consent it stands in the chat item alone.
create function folkmoot_card(w pending) returns jsonb language sql stable as $$
    select case when w.card ? 'chatItemId' then coalesce((
            select c.card from chat_item c where c.tenant_id = w.tenant_id and c.run_id = w.run_id and c.call_id = w.pending_id), w.card)
        else w.card end
$$;

-- The end of a delegated run wakes the run above it, as that of a sub-run does (migration 0011).
drop trigger sub_run_ended on process;
create trigger sub_run_ended after update of ended_at on process for each row
    when (old.ended_at is null and new.ended_at is not null and new.parent_kind in ('Interaction', 'AgentRun'))
    execute function folkmoot_sub_run_ended();


-- Where an agent run's payload lies, as those who look into the content store find it.
alter table content add column path text;
create unique index content_path on content (tenant_id, path) where path is not null;

-- Until when a channel that is asked for what has come is left to whoever looks into it, or needs no look.
create table channel_look (
    tenant_id uuid not null,
    channel_id uuid not null,
    until timestamptz not null,
    primary key (tenant_id, channel_id)
);
-- requests from outside know a channel's id, and no tenant
create index definition_by_id on definition (definition_id);
