-- name: insert_run*!
insert into process (tenant_id, run_id, kind, namespace_id, definition_id, definition_version, created_by, created_at, updated_at, tree_root_id,
                     swarm_root_id, parent_id, parent_kind, depth, started_by, state_version, duration_auto_termination, duration_human_timeout,
                     response_json_schema, tags, search, priority, ready_at, stops_below)
values (:tenant_id, :run_id, :kind, :namespace_id, :definition_id, :definition_version, :created_by, folkmoot_now(), folkmoot_now(),
        :tree_root_id, :swarm_root_id, :parent_id, :parent_kind, :depth, :started_by, :state_version, :duration_auto_termination, :duration_human_timeout, :response_json_schema,
        :tags, :search, :priority, folkmoot_now(), :stops_below);

-- name: insert_resolved*!
insert into resolved_definition (tenant_id, run_id, body) values (:tenant_id, :run_id, :body);

-- name: resolved$
select body from resolved_definition where tenant_id = :tenant_id and run_id = :run_id;

-- name: claim
-- Takes a batch of claimable runs under the worker's own live lease: a worker whose lease has run out claims nothing.
-- The worker's row is locked against a sweep that would take it for dead meanwhile.
with me as materialized (
    select worker_id, host from worker where worker_id = :worker_id and lease_until > folkmoot_now() for key share),
t as materialized (select folkmoot_now() as now),
ready as (
    select p.tenant_id, p.run_id from process p
    where p.ready_at is not null and p.ready_at <= (select now from t) and p.is_suspect = :suspects and p.state_version <= :state_version
        and exists (select from me)
    order by p.priority desc, p.ready_at
    for update skip locked limit :batch)
update process p set
    status = 'Running', worker_id = me.worker_id, hostname = me.host, claim_number = p.claim_number + 1, claim_id = gen_random_uuid(),
    ready_at = null, pending_id = null, await_ids = null, awaits_since = null, claimed_at = t.now, pinged_at = null, started_at = coalesce(p.started_at, t.now), updated_at = t.now,
    -- the wait for sub-runs was time at work
    execution_time = p.execution_time + coalesce(t.now - p.awaits_since, '0'),
    deadline_at = t.now + (p.duration_auto_termination - p.execution_time - coalesce(t.now - p.awaits_since, '0'))
from ready, me, t
where p.tenant_id = ready.tenant_id and p.run_id = ready.run_id
returning p.tenant_id, p.run_id, p.claim_number, p.claim_id, p.signal_number, p.last_sequence, p.deadline_at, p.is_suspect,
    p.driver_errors, p.stopped_by, p.before_timeout_status, case when p.parent_kind <> 'App' then p.parent_id end as parent_id, t.now,
    p.execution_time;

-- name: are_claimable^
-- What a worker wants to know that claimed less than it had room for, or is apart: are there suspects, and when is the next
-- run ready that now waits for its time?
select exists (select from process where ready_at <= folkmoot_now() and is_suspect and state_version <= :state_version) as suspects,
       (select min(ready_at) - folkmoot_now() from process
        where ready_at > folkmoot_now() and not is_suspect and state_version <= :state_version) as next_in;

-- name: held
-- What a worker holds: to learn of a moved signal though its notification was lost, and of a claim whose answer was lost.
select tenant_id, run_id, claim_number, claim_id, signal_number from process where worker_id = :worker_id;

-- name: overdue
-- Runs at work past their time limit: their signal moves, so that whoever holds them decides again. Locked ones wait for the
-- next sweep.
with late as (
    select tenant_id, run_id from process where deadline_at <= folkmoot_now() and ended_at is null for update skip locked)
update process p set signal_number = signal_number + 1 from late
where p.tenant_id = late.tenant_id and p.run_id = late.run_id
returning p.tenant_id, p.run_id;

-- name: tenants_due
-- Whose people let time run out. One tenant after the other is seen to, each in a transaction of its own.
select distinct w.tenant_id from pending w join process p on p.tenant_id = w.tenant_id and p.run_id = w.run_id
where w.outcome is null and w.expires_at <= folkmoot_now() and p.ended_at is null;

-- name: expire
-- Runs of a tenant that wait for a person past their time: nothing can be answered any more, and a worker is woken to end them. Whoever
-- answers at this very moment has locked the run, and is first; the next sweep sees what came of it.
with due as (
    select p.tenant_id, p.run_id from process p join pending w on w.tenant_id = p.tenant_id and w.run_id = p.run_id
    where w.tenant_id = :tenant_id and w.outcome is null and w.expires_at <= folkmoot_now() and p.status in ('PendingHuman', 'PendingApproval')
    for update of p skip locked),
closed as (
    update pending w set outcome = 'Expired', answered_at = folkmoot_now() from due
    where w.tenant_id = due.tenant_id and w.run_id = due.run_id and w.outcome is null and w.expires_at <= folkmoot_now()
    returning w.*),
noted as (
    insert into audit (tenant_id, at, user_id, user_name, channel, action, subject_kind, subject_id, detail)
    select c.tenant_id, c.answered_at, null, 'Orchestrator', 'clock', 'pending.expired', 'run', c.run_id,
           jsonb_build_object('pendingId', c.pending_id, 'kind', c.kind)
    from closed c),
told as (
    insert into outbox (tenant_id, message_id, webhook_id, kind, body, created_at, ready_at)
    select c.tenant_id, folkmoot_new_id(), h.webhook_id, 'approval.decided', folkmoot_decided(row(c.*)::pending), c.answered_at,
           c.answered_at
    from closed c join webhook h on h.tenant_id = c.tenant_id
    where h.disabled_at is null and 'approval.decided' = any(h.kinds)
    for key share of h) -- one that is being deleted is waited for, and told nothing
update process p set
    before_timeout_status = p.status, ready_at = folkmoot_now(), signal_number = p.signal_number + 1, updated_at = folkmoot_now()
from (select distinct tenant_id, run_id from closed) c where p.tenant_id = c.tenant_id and p.run_id = c.run_id
returning p.tenant_id, p.run_id;

-- name: request_stop^
-- A run that nobody has begun is Stopped at once, and so is one of an app, which has no worker; any other learns of the stop by its
-- signal, and one that waits for its time waits no longer. Final ones are left alone.
update process set
    stopped_by = coalesce(stopped_by, :stopped_by), signal_number = signal_number + 1, updated_at = folkmoot_now(),
    status = case when status = 'New' or kind = 'App' then 'Stopped' else status end,
    ended_at = case when status = 'New' or kind = 'App' then folkmoot_now() end,
    lost_at = null,
    execution_time = case when kind = 'App' then folkmoot_now() - started_at else execution_time end,
    ready_at = case when status = 'New' then null when kind = 'App' then null when worker_id is null then least(ready_at, folkmoot_now())
        else ready_at end
where tenant_id = :tenant_id and run_id = :run_id and kind = :run_type::process_kind and ended_at is null
returning status;

-- name: get^
select p.*, w.pinged_at as worker_pinged_at from process p left join worker w using (worker_id)
where p.tenant_id = :tenant_id and p.run_id = :run_id and p.kind = 'Interaction';

-- name: signals^
-- What a worker reads again when the signal has moved; no row: its claim is no more.
select signal_number, stopped_by, last_sequence, folkmoot_now() as now from process
where tenant_id = :tenant_id and run_id = :run_id and claim_number = :number and claim_id = :claim_id;

-- name: page_ids
-- Runs, the newest first; each filter may be null. Runs of other types are among them only where the listing is by a tree or a part of one. It is planned anew for the values at hand (see run_lists), so that a filter
-- that is null is gone, and the others choose their index by how many rows they leave.
select run_id from process
where tenant_id = :tenant_id
    and (:status::run_status is null or status = :status::run_status)
    and (:definition_id::uuid is null or definition_id = :definition_id::uuid)
    and (:namespace_id::uuid is null or namespace_id = :namespace_id::uuid)
    and (:root::uuid is null or tree_root_id = :root::uuid)
    and (:below::uuid is null or run_id = any(array(
        with recursive below as (
            select q.run_id from process q where q.tenant_id = :tenant_id and q.run_id = :below::uuid
            union all
            select c.run_id from below b join process c on c.tenant_id = :tenant_id and c.parent_id = b.run_id)
        select b.run_id from below b)))
    and (:root::uuid is not null or :below::uuid is not null or kind = 'Interaction')
    and (:parent::uuid is null or parent_id = :parent::uuid)
    and (:tag::text is null or (tags <> '{}' and tags @> array[:tag::text]))
    and (:text::text is null or to_tsvector('simple', search) @@ websearch_to_tsquery('simple', :text::text))
    and (:from_date::timestamptz is null or created_at >= :from_date::timestamptz)
    and (:to_date::timestamptz is null or created_at < :to_date::timestamptz)
    and (:after_date::timestamptz is null or (created_at, run_id) < (:after_date::timestamptz, :after_id::uuid))
order by created_at desc, run_id desc limit :limit::bigint;

-- name: views
-- Runs with what their resolved definitions tell of them, and what they wait for, the newest first.
select p.*, w.pinged_at as worker_pinged_at, folkmoot_now() as now, coalesce(r.body -> 'inputs', p.app_inputs) as inputs, r.body -> 'disabled_tools' as disabled_tools,
    case when r.body ? 'credentials' then jsonb_build_object('credential_stack', r.body -> 'credential_stack',
        'credentials', r.body -> 'credentials', 'allow_platform_fallback', r.body -> 'allow_platform_fallback') end as keys,
    r.body #> '{swarm,limits}' as swarm_limits, r.body -> 'duration_warning_to_ai' as duration_warning_to_ai, r.body -> 'ai_model_overrides' as ai_model_overrides,
    x.pending_id as x_pending_id, x.kind as x_kind, x.asked_at as x_asked_at, x.expires_at as x_expires_at, folkmoot_card(x) as x_shown_card,
    x.binding_hash as x_binding_hash, x.outcome as x_outcome, x.answer as x_answer, x.answered_at as x_answered_at,
    x.answered_by as x_answered_by, x.answered_by_name as x_answered_by_name, x.channel as x_channel,
    (select i.created_at from item i where i.tenant_id = p.tenant_id and i.run_id = p.run_id
        and i.sequence = (x.card -> 'managedDispatch' ->> 'floorSequence')::bigint) as dispatch_began_at
from process p left join worker w using (worker_id) left join resolved_definition r on r.tenant_id = p.tenant_id and r.run_id = p.run_id
    left join pending x on x.tenant_id = p.tenant_id and x.run_id = p.run_id and x.pending_id = p.pending_id
where p.tenant_id = :tenant_id and p.run_id = any(:run_ids::uuid[])
order by p.created_at desc, p.run_id desc;

-- name: created_by$
select created_by from process where tenant_id = :tenant_id and run_id = :run_id;

-- name: tree_counts^
-- Of the oldest runs of a tree, as many as are counted.
select count(*) as total, count(*) filter (where ended_at is null) as active
from (select ended_at from process where tenant_id = :tenant_id and tree_root_id = :root order by created_at, run_id limit :most) p;
