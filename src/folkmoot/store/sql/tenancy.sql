-- name: insert_tenant$
-- Of several at once, one inserts; the others wait for its commit and insert nothing. It is the operator's own, and may use their keys.
insert into tenant (tenant_id, name, created_at, allow_platform_fallback) values (:tenant_id, :name, folkmoot_now(), true) on conflict (name) do nothing returning tenant_id;

-- name: insert_user!
insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at)
values (:tenant_id, :user_id, :name, :role, :created_by, folkmoot_now(), folkmoot_now());

-- name: owner^
select u.tenant_id, u.user_id, u.name from app_user u join tenant t using (tenant_id)
where t.name = :tenant and u.role = 'owner' and u.removed_at is null order by u.created_at, u.user_id limit 1;

-- name: user_name$
select name from app_user where tenant_id = :tenant_id and user_id = :user_id;

-- name: insert_key^
-- It rests on its maker, and on those on whom the maker's own key rests: else that key would make one that lasts beyond them.
insert into api_key (tenant_id, key_id, user_id, name, prefix, hash, created_by, created_at, expires_at, scopes, rests_on)
values (:tenant_id, :key_id, :user_id, :name, :prefix, :hash, :created_by, folkmoot_now(), :expires_at, :scopes, array(
    select :created_by::uuid as maker union
    select unnest(w.rests_on) from api_key w where w.tenant_id = :tenant_id and w.key_id = :made_with::uuid
    except select :user_id::uuid))
returning tenant_id, key_id, user_id, name, prefix, created_by, created_at, expires_at, revoked_at, last_used_at, scopes;

-- name: key_of_hash^
-- Revoked and expired ones too, so that their bearer is told. Roles are in the order of what they may; null counts for none.
select k.tenant_id, k.key_id, k.user_id, u.name as user_name, u.role as own_role, least(u.role, m.role) as role, k.scopes,
    u.removed_at is not null as is_removed, coalesce(m.is_removed, false) as is_maker_removed, k.revoked_at is not null as is_revoked,
    coalesce(k.expires_at <= t.now, false) as is_expired, coalesce(k.last_used_at < t.now - interval '1 minute', true) as is_use_unnoted
from api_key k join app_user u using (tenant_id, user_id) cross join (select folkmoot_now() as now) t
    cross join lateral (
        select min(m.role) as role, bool_or(m.removed_at is not null) as is_removed
        from app_user m where m.tenant_id = k.tenant_id and m.user_id = any(k.rests_on)) m
where k.hash = :hash;

-- name: note_use!
-- Of many requests at once, one writes.
update api_key set last_used_at = folkmoot_now()
where tenant_id = :tenant_id and key_id = :key_id and (last_used_at is null or last_used_at < folkmoot_now() - interval '1 minute');

-- name: keys
select tenant_id, key_id, user_id, name, prefix, created_by, created_at, expires_at, revoked_at, last_used_at, scopes from api_key
where tenant_id = :tenant_id and key_id > :after and (:user_id::uuid is null or user_id = :user_id) order by key_id limit :limit;

-- name: key_by_id^
select tenant_id, key_id, user_id, name, prefix, created_by, created_at, expires_at, revoked_at, last_used_at, scopes from api_key
where tenant_id = :tenant_id and key_id = :key_id;

-- name: standing^
-- What a key may now; nothing once it is of no use.
select least(u.role, m.role) as role, k.scopes from api_key k join app_user u using (tenant_id, user_id)
    cross join lateral (
        select min(m.role) as role, bool_or(m.removed_at is not null) as is_removed
        from app_user m where m.tenant_id = k.tenant_id and m.user_id = any(k.rests_on)) m
where k.tenant_id = :tenant_id and k.key_id = :key_id and k.revoked_at is null and u.removed_at is null and m.is_removed is not true
    and (k.expires_at is null or k.expires_at > folkmoot_now());

-- name: revoke^
-- The first time counts.
update api_key set revoked_at = coalesce(revoked_at, folkmoot_now()) where tenant_id = :tenant_id and key_id = :key_id
returning tenant_id, key_id, user_id, name, prefix, created_by, created_at, expires_at, revoked_at, last_used_at, scopes;

-- name: insert_namespace!
insert into namespace (tenant_id, namespace_id, name, created_at) values (:tenant_id, :namespace_id, :name, folkmoot_now())
on conflict (tenant_id, name) do nothing;

-- name: namespace_by_name^
select tenant_id, namespace_id, name, created_at from namespace where tenant_id = :tenant_id and name = :name;

-- name: namespaces
select tenant_id, namespace_id, name, created_at from namespace where tenant_id = :tenant_id and name > :after order by name limit :limit;

-- name: allows_platform_fallback$
select allow_platform_fallback from tenant where tenant_id = :tenant_id;

-- name: set_platform_fallback!
update tenant set allow_platform_fallback = :is_allowed where tenant_id = :tenant_id;

-- name: now$
select folkmoot_now();
