-- name: keys_now^
-- All that a choice of a key looks at, at one moment: the tenant's keys of the provider (where they count), the secrets of the run's
-- own entries, what rests, and whether the tenant may have the operator's keys.
select extract(epoch from folkmoot_now())::float8 as now,
    coalesce((select allow_platform_fallback from tenant where tenant_id = :tenant_id), false) as allows_platform,
    array(select row(m.model_key_id, m.name, m.secret_id, m.base_url, m.model_name_overrides::text, m.is_own_license, m.priority)
        from model_key m where m.tenant_id = :tenant_id and m.provider = :provider and :reads_tenant
        order by m.priority, m.name) as model_keys,
    array(select row(s.secret_id, n.name, s.name, s.sealed, s.updated_at)
        from secret s join namespace n using (tenant_id, namespace_id)
        where s.tenant_id = :tenant_id and (s.secret_id = any(:secret_ids::uuid[]) or (:reads_tenant and exists (
            select from model_key m
            where m.tenant_id = :tenant_id and m.provider = :provider and m.secret_id = s.secret_id)))) as secrets,
    array(select row(r.key, r.model, r.version, r.reason, r.detail, extract(epoch from r.until)::float8)
        from credential_rest r where r.tenant_id = :tenant_id and r.until > folkmoot_now()) as rests;

-- name: note_key$
-- Whose key a call takes, before it is sent: of a lost call too it is known then. No row: the claim is no more.
update model_call m set credential = :credential, is_own_license = :is_own_license
where m.tenant_id = :tenant_id and m.run_id = :run_id and m.model_call_id = :model_call_id and m.ended_at is null and exists (
    select from process p
    where p.tenant_id = :tenant_id and p.run_id = :run_id and p.claim_number = :number and p.claim_id = :claim_id)
returning true;

-- name: rest$
-- The key rests from now on. Of several calls that fail with it side by side one begins the rest, and the failure is recorded with
-- that one; the others wait for its commit and change nothing. Rests in a row for one reason get longer, from `first` seconds
-- doubling to `longest`, but are never shorter than `least`. No row: it rests already, or the claim is no more.
with t as materialized (select folkmoot_now() as now),
began as (
    insert into credential_rest as r (tenant_id, key, model, version, reason, detail, began_at, until, times)
    select :tenant_id, :key, :model, :version, :reason, :detail, t.now,
        t.now + make_interval(secs => greatest(:least::float8, :first::float8)), 1
    from t where exists (
        select from process p
        where p.tenant_id = :tenant_id and p.run_id = :run_id and p.claim_number = :number and p.claim_id = :claim_id)
    on conflict (tenant_id, key, model) do update set
        version = excluded.version, reason = excluded.reason, detail = excluded.detail, began_at = excluded.began_at,
        times = case when r.version = excluded.version and r.reason = excluded.reason
                and r.until > excluded.began_at - make_interval(secs => :forgotten::float8) then least(r.times + 1, 30) else 1 end,
        until = excluded.began_at + make_interval(secs => greatest(:least::float8, least(:longest::float8, :first::float8 * case
            when r.version = excluded.version and r.reason = excluded.reason
                and r.until > excluded.began_at - make_interval(secs => :forgotten::float8) then 2.0 ^ r.times else 1 end)))
    where r.until <= excluded.began_at or r.version <> excluded.version
    returning key, reason, detail, began_at, until),
recorded as (
    insert into credential_failure (tenant_id, run_id, key, provider, reason, detail, at, retry_after_seconds)
    select :tenant_id, :run_id, b.key, :provider, b.reason, b.detail, b.began_at, ceil(extract(epoch from b.until - b.began_at))
    from began b where :is_recorded)
select extract(epoch from until - began_at)::float8 from began;

-- name: failures_of_run
select key, provider, reason, detail, at, retry_after_seconds from credential_failure
where tenant_id = :tenant_id and run_id = :run_id order by failure_id;
