-- name: insert_session!
insert into web_session (tenant_id, token_hash, key_id, user_id, created_at, expires_at)
select :tenant_id, :token_hash, :key_id, :user_id, t.now, t.now + make_interval(secs => :seconds) from (select folkmoot_now() as now) t;

-- name: key_of_session^
-- The session's key as `key_of_hash` tells of one, revoked and expired ones too; none once the session itself is over.
select k.tenant_id, k.key_id, k.user_id, u.name as user_name, u.role as own_role, least(u.role, m.role) as role, k.scopes,
    u.removed_at is not null as is_removed, coalesce(m.is_removed, false) as is_maker_removed, k.revoked_at is not null as is_revoked,
    coalesce(k.expires_at <= t.now, false) as is_expired, coalesce(k.last_used_at < t.now - interval '1 minute', true) as is_use_unnoted
from web_session s join api_key k on k.tenant_id = s.tenant_id and k.key_id = s.key_id
    join app_user u on u.tenant_id = s.tenant_id and u.user_id = s.user_id cross join (select folkmoot_now() as now) t
    cross join lateral (
        select min(m.role) as role, bool_or(m.removed_at is not null) as is_removed
        from app_user m where m.tenant_id = k.tenant_id and m.user_id = any(k.rests_on)) m
where s.token_hash = :token_hash and s.expires_at > t.now;

-- name: delete_session!
delete from web_session where token_hash = :token_hash;

-- name: forget_old!
-- Those whose key was revoked stay until their own time is over; nobody can use them.
delete from web_session where expires_at <= folkmoot_now();
