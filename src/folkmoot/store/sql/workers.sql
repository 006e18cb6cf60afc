-- name: register!
-- A worker, or a worker's new incarnation, begins its lease.
insert into worker (worker_id, host, pid, version, is_apart, started_at, pinged_at, lease_until)
values (:worker_id, :host, :pid, :version, :is_apart, folkmoot_now(), folkmoot_now(), folkmoot_now() + make_interval(secs => :lease_seconds::float8));

-- name: ping$
-- Lengthens a live lease; no row means that the worker is taken for dead.
update worker set pinged_at = folkmoot_now(), lease_until = folkmoot_now() + make_interval(secs => :lease_seconds::float8)
where worker_id = :worker_id and lease_until > folkmoot_now() returning true;

-- name: end_lease!
-- The worker is known to be gone (it drained, or its process was waited for): nobody has to wait for its lease to run out.
update worker set lease_until = '-infinity' where worker_id = :worker_id;

-- name: remove!
delete from worker where worker_id = :worker_id and not exists (select from process where process.worker_id = :worker_id);

-- name: live
select worker_id, host, pid, version, is_apart, started_at, pinged_at, lease_until from worker
where lease_until > folkmoot_now() order by started_at;

-- name: take_from_lost
-- Runs of workers whose lease has run out become claimable by anybody, as suspects. A crash counts only while apart.
-- Row locks are skipped: whoever holds one is moving that run already.
-- A worker without a row counts as lost too: its row may have been removed while its last claim was being committed.
with held as (
    select p.tenant_id, p.run_id, coalesce(w.is_apart, false) as is_apart, coalesce(w.pinged_at, p.claimed_at) as pinged_at
    from process p left join worker w using (worker_id)
    where p.worker_id is not null and (w.worker_id is null or w.lease_until <= folkmoot_now())
    for update of p skip locked)
update process p set
    worker_id = null, claim_id = null, deadline_at = null, ready_at = folkmoot_now(), is_suspect = true,
    crash_count = p.crash_count + held.is_apart::int,
    pinged_at = held.pinged_at,
    execution_time = p.execution_time + greatest(held.pinged_at - p.claimed_at, '0'),
    claimed_at = null
from held where p.tenant_id = held.tenant_id and p.run_id = held.run_id
returning p.tenant_id, p.run_id, p.crash_count;

-- name: remove_lost!
delete from worker w where lease_until <= folkmoot_now() and not exists (select from process p where p.worker_id = w.worker_id);

-- name: poisonous
-- A run that took its worker down too often while it ran apart.
select tenant_id, run_id from process
where ready_at is not null and is_suspect and crash_count >= :limit::int and status = 'Running' and worker_id is null
    and state_version <= :state_version::int -- what this version cannot read it cannot close either
limit 1 for update skip locked;

-- name: fail_poisonous!
-- Such a run is Failed, with what closes its conversation; nobody holds it, so no claim has to match.
with t as materialized (select folkmoot_now() as now),
p as (
    update process set
        status = 'Failed', ended_at = t.now, updated_at = t.now, ready_at = null, failure_details = :reason,
        signal_number = signal_number + 1, last_sequence = last_sequence + cardinality(:kinds::text[])
    from t where tenant_id = :tenant_id and run_id = :run_id and status = 'Running' and worker_id is null
    returning tenant_id, run_id, last_sequence - cardinality(:kinds::text[]) as before),
i as (
    insert into item (tenant_id, run_id, sequence, created_at, item_id, kind, author_kind, author_name, thread_id, body, detail)
    select p.tenant_id, p.run_id, p.before + u.n, t.now, u.item_id, u.kind::item_kind, u.author_kind::author_kind, u.author_name,
           u.thread_id, u.body, u.detail
    from p, t, unnest(:item_ids::uuid[], :kinds::text[], :author_kinds::text[], :author_names::text[], :thread_ids::text[],
                      :bodies::jsonb[], :details::jsonb[])
        with ordinality as u(item_id, kind, author_kind, author_name, thread_id, body, detail, n))
update call c set ended_at = t.now, outcome = case when c.begun_at is null then 'error' else 'unknown' end
from p, t where c.tenant_id = p.tenant_id and c.run_id = p.run_id and c.ended_at is null;
