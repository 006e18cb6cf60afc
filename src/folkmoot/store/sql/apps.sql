-- name: insert_app^
-- It is at work from now on, and is pinged by being opened.
with t as materialized (select folkmoot_now() as now)
insert into process (tenant_id, run_id, kind, app_name, app_description, app_inputs, ping_limit, created_by, created_at, updated_at, tree_root_id,
                     swarm_root_id, state_version, tags, search, status, started_at, pinged_at, lost_at, stops_below)
select :tenant_id, :run_id, 'App', :name, :description, :inputs::text::jsonb, :ping_limit, :created_by, t.now, t.now, :run_id,
       :run_id, :state_version, :tags, :search, :status::run_status, t.now, t.now, t.now + :ping_limit, true
from t
returning *, created_at as now;

-- name: ping^
-- Lengthens the life of a run that is not lost yet; no row: it has ended, or its limit has run out, which only the sweep may say.
with t as materialized (select folkmoot_now() as now)
update process p set pinged_at = t.now, lost_at = t.now + p.ping_limit, updated_at = t.now
from t
where p.tenant_id = :tenant_id and p.run_id = :run_id and p.app_name = :name and p.status = 'Running' and p.lost_at > t.now
returning p.*, t.now;

-- name: end^
-- Of two ends, and of an end and a loss, one matches.
with t as materialized (select folkmoot_now() as now)
update process p set
    status = :status::run_status, output = :output, failure_details = :failure_details, ended_at = t.now, updated_at = t.now,
    lost_at = null, execution_time = t.now - p.started_at
from t
where p.tenant_id = :tenant_id and p.run_id = :run_id and p.app_name = :name and p.status = 'Running' and p.lost_at > t.now
returning p.*, t.now;

-- name: lose
-- Runs that were not pinged for their own limit are Failed. One that is pinged or ended at this very moment is locked, and is looked
-- at again in the next sweep. `tenant_id` and `run_id` null: all there are.
with t as materialized (select folkmoot_now() as now),
late as (
    select p.tenant_id, p.run_id from process p cross join t
    where p.lost_at <= t.now and p.status = 'Running' and (:tenant_id::uuid is null or p.tenant_id = :tenant_id::uuid)
        and (:run_id::uuid is null or p.run_id = :run_id::uuid)
    for update of p skip locked),
lost as (
    update process p set
        status = 'Failed', ended_at = t.now, updated_at = t.now, lost_at = null, execution_time = t.now - p.started_at,
        failure_details = format(
            'The app did not ping this run for %s, the limit that it was opened with; its last ping was at %s. The app may have ended '
            'or hang: look at it, and open a new run.', p.ping_limit, folkmoot_told(p.pinged_at))
    from late cross join t
    where p.tenant_id = late.tenant_id and p.run_id = late.run_id
    returning p.tenant_id, p.run_id, p.app_name, p.ended_at),
noted as (
    insert into audit (tenant_id, at, user_id, user_name, channel, action, subject_kind, subject_id, detail)
    select l.tenant_id, l.ended_at, null, 'Orchestrator', 'clock', 'run.lost', 'run', l.run_id, jsonb_build_object('app', l.app_name)
    from lost l)
select tenant_id, run_id from lost;

-- name: get_app^
select p.*, folkmoot_now() as now from process p
where p.tenant_id = :tenant_id and p.run_id = :run_id and p.app_name = :name;

-- name: page_of_app
-- The runs of one app, the newest first. It is planned anew for the values at hand, so that a filter that is null is gone.
select p.*, folkmoot_now() as now from process p
where p.tenant_id = :tenant_id and p.app_name = :name
    and (:status::run_status is null or p.status = :status::run_status)
    and (:after_date::timestamptz is null or (p.created_at, p.run_id) < (:after_date::timestamptz, :after_id::uuid))
order by p.created_at desc, p.run_id desc limit :limit::bigint;
