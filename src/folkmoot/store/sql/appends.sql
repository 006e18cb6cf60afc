-- name: append
-- Commits the outcomes of several runs at once, each fenced by its own claim number and claim id.
-- A missing ord: that claim is no more, nothing of the run was written. before <> what the worker expected: others wrote
-- in between. is_whole = false: the signal has moved, so only the firm part was written.
with t as materialized (select folkmoot_now() as now),
r as materialized (select *, coalesce(ends, pauses) as moves from unnest($1::append_run_4[])),
p as (
    update process p set
        updated_at = t.now,
        last_sequence = p.last_sequence + case when p.signal_number = r.signal then r.total else r.firm end,
        is_suspect = p.is_suspect and case when p.signal_number = r.signal then r.total else r.firm end = 0,
        crash_count = case when case when p.signal_number = r.signal then r.total else r.firm end = 0 then p.crash_count else 0 end,
        driver_errors = coalesce(r.errors, p.driver_errors),
        status = case when r.moves is not null and p.signal_number = r.signal then r.moves else p.status end,
        output = case when p.signal_number = r.signal then r.output end,
        failure_details = case when p.signal_number = r.signal then r.failure end,
        ended_at = case when r.ends is not null and p.signal_number = r.signal then t.now end,
        -- let go of it: by its end or its pause, which are soft, or by handing it back, whatever came between
        worker_id = case when r.releases or (r.moves is not null and p.signal_number = r.signal) then null else p.worker_id end,
        claim_id = case when r.releases or (r.moves is not null and p.signal_number = r.signal) then null else p.claim_id end,
        deadline_at = case when r.releases or (r.moves is not null and p.signal_number = r.signal) then null else p.deadline_at end,
        pinged_at = case when r.releases or (r.moves is not null and p.signal_number = r.signal) then t.now else p.pinged_at end,
        execution_time = case when r.releases or (r.moves is not null and p.signal_number = r.signal)
            then p.execution_time + (t.now - p.claimed_at) else p.execution_time end,
        claimed_at = case when r.releases then null else p.claimed_at end,
        -- a pause for what was answered meanwhile is no wait: the next claim sees the answer
        ready_at = case when r.releases then t.now + make_interval(secs => r.ready_in)
            when r.pauses is not null and p.signal_number = r.signal and exists (
                select from pending w where w.tenant_id = p.tenant_id and w.run_id = p.run_id and w.pending_id = r.pending_id
                    and w.outcome is not null) then t.now
            when r.awaits is not null and p.signal_number = r.signal then case
                when exists (select from unnest(r.awaits) w where folkmoot_waits_for(r.tenant_id, w.sub_run_ids, w.is_all) = 0) then t.now
                else r.ready_by end end,
        pending_id = case when r.pauses is not null and p.signal_number = r.signal then r.pending_id end,
        await_ids = case when r.awaits is not null and p.signal_number = r.signal then array(select w.id from unnest(r.awaits) w) end,
        -- beside a person sub-runs are awaited, too, but that is a wait for a person, and no time at work
        awaits_since = case when r.pauses = 'PendingSubInteractions' and p.signal_number = r.signal then t.now end
    from r cross join t
    where p.tenant_id = r.tenant_id and p.run_id = r.run_id and p.claim_number = r.number and p.claim_id = r.claim_id
        and p.status = 'Running'
    returning r.ord, p.tenant_id, p.run_id, p.signal_number, p.stopped_by, p.signal_number = r.signal as is_whole, r.firm,
        p.duration_human_timeout,
        p.last_sequence - case when p.signal_number = r.signal then r.total else r.firm end as before),
i as (
    insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, author_id, thread_id,
                      turn_id, model_call_id, body, detail)
    select p.tenant_id, p.run_id, p.before + u.n, t.now, u.item_id, u.kind, u.author_kind, u.author_name, u.author_id, u.thread_id,
           u.turn_id, u.model_call_id, u.body, u.detail
    from unnest($2::append_item[]) as u
    join p using (ord) cross join t
    where p.is_whole or u.n <= p.firm),
model_calls_begun as (
    insert into model_call (tenant_id, run_id, model_call_id, turn_id, started_at, step_key, participant, provider, model, purpose,
                            guessed_tokens, estimated_tokens, trimmed_upto)
    select p.tenant_id, p.run_id, u.id, u.turn_id, t.now, u.step_key, u.participant, u.provider, u.model, u.purpose,
           u.guessed_tokens, u.estimated_tokens, u.trimmed_upto
    from unnest($3::append_model_call_begun[]) as u
    join p using (ord) cross join t
    where p.is_whole),
-- joined first, so that each call is then found by its whole key, however many the run has had
ended as materialized (
    select p.tenant_id, p.run_id, u.id, u.usage, u.replay, u.tier, u.error_class, u.error_message, u.wait, u.cost
    from unnest($4::append_model_call_ended[]) as u
    join p using (ord)
    where p.is_whole or u.is_firm),
model_calls_ended as (
    update model_call m set ended_at = t.now, usage = e.usage, replay = e.replay, service_tier = e.tier, error_class = e.error_class,
        error_message = e.error_message, cost = e.cost, not_before = t.now + make_interval(secs => e.wait)
    from ended e cross join t
    where m.tenant_id = e.tenant_id and m.run_id = e.run_id and m.model_call_id = e.id and m.ended_at is null),
-- from here to `last` is left out for batches without tool calls, voided model calls and pauses
model_calls_voided as (
    update model_call m set ended_at = t.now, voided_at = t.now
    from unnest($5::int[], $6::uuid[]) as u(ord, id) join p using (ord) cross join t
    where m.tenant_id = p.tenant_id and m.run_id = p.run_id and m.model_call_id = u.id and m.ended_at is null),
-- A call that is asked for and closed in one append (the run ends with it) never was open: its row comes in closed.
calls_asked as (
    insert into call (tenant_id, run_id, call_id, model_call_id, operation, operation_version, arguments_hash, idempotency_key, asked_at,
                      ended_at, outcome)
    select p.tenant_id, p.run_id, u.id, u.model_call_id, u.operation, u.version, u.hash, u.key, t.now,
           case when p.is_whole and u.closed_as is not null then t.now end, case when p.is_whole then u.closed_as end
    from unnest($7::int[], $8::uuid[], $9::uuid[], $10::text[], $11::int[], $12::bytea[], $13::text[], $14::text[])
        as u(ord, id, model_call_id, operation, version, hash, key, closed_as)
    join p using (ord) cross join t),
calls_begun as (
    update call c set begun_at = t.now, attempts = c.attempts + 1
    from unnest($15::int[], $16::uuid[]) as u(ord, id) join p using (ord) cross join t
    where p.is_whole and c.tenant_id = p.tenant_id and c.run_id = p.run_id and c.call_id = u.id and c.ended_at is null),
calls_ended as (
    update call c set ended_at = t.now, outcome = u.outcome
    from unnest($17::int[], $18::uuid[], $19::text[], $20::boolean[]) as u(ord, id, outcome, is_firm) join p using (ord) cross join t
    where (p.is_whole or u.is_firm) and c.tenant_id = p.tenant_id and c.run_id = p.run_id and c.call_id = u.id and c.ended_at is null),
-- Asked again, after a wake for nothing, it is the same row: since when it waits, and until when, stay.
pending_opened as (
    insert into pending (tenant_id, run_id, pending_id, kind, asked_at, expires_at, card, binding_hash)
    select p.tenant_id, p.run_id, u.id, u.kind, t.now, t.now + p.duration_human_timeout, u.card, u.hash
    from unnest($21::append_pending[]) as u join p using (ord) cross join t
    where p.is_whole
    on conflict do nothing
    returning tenant_id, run_id, pending_id, kind, asked_at, expires_at),
told as (
    insert into outbox (tenant_id, message_id, webhook_id, kind, body, created_at, ready_at)
    select o.tenant_id, gen_random_uuid(), w.webhook_id, 'approval.requested', jsonb_build_object(
               'type', 'approval.requested', 'timestamp', folkmoot_told(o.asked_at), 'data', u.told || jsonb_build_object(
                   'id', o.pending_id, 'runId', o.run_id, 'agentRun', (
                       select g.id from agent_run g where g.tenant_id = o.tenant_id and g.run_id = o.run_id),
                   'rootProcessId', nullif(q.tree_root_id, q.run_id), 'kind', o.kind, 'status', 'Pending', 'interactionName', d.name,
                   'namespaceName', s.name, 'dateRequested', folkmoot_told(o.asked_at), 'dateExpires', folkmoot_told(o.expires_at),
                   'isCut', false, 'receipt', null)), o.asked_at, o.asked_at
    from unnest($21::append_pending[]) as u join p using (ord)
    join pending_opened o on o.tenant_id = p.tenant_id and o.run_id = p.run_id and o.pending_id = u.id
    join webhook w on w.tenant_id = o.tenant_id
    join process q on q.tenant_id = o.tenant_id and q.run_id = o.run_id
    join definition d on d.tenant_id = q.tenant_id and d.definition_id = q.definition_id
    join namespace s on s.tenant_id = q.tenant_id and s.namespace_id = q.namespace_id
    where w.disabled_at is null and 'approval.requested' = any(w.kinds)
    for key share of w), -- one that is being deleted is waited for, and told nothing
-- Awaited again, after a wake for nothing, it is the same row.
awaits as (
    insert into sub_run_await (tenant_id, run_id, await_id, sub_run_ids, is_all, participant, author_id, thread_id, waits_for, started_at)
    select p.tenant_id, p.run_id, u.id, u.sub_run_ids, u.is_all, u.participant, u.author_id, u.thread_id,
           folkmoot_waits_for(p.tenant_id, u.sub_run_ids, u.is_all), t.now
    from p join r using (ord) cross join lateral unnest(r.awaits) as u cross join t
    where p.is_whole
    on conflict (tenant_id, run_id, await_id) do update set waits_for = excluded.waits_for),
last as (select 1)
select p.ord, p.before, p.signal_number, p.is_whole, p.stopped_by, t.now from p cross join t;
