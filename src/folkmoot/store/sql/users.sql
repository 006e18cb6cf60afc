-- name: insert_user^
insert into app_user (tenant_id, user_id, name, role, created_by, created_at, updated_at)
values (:tenant_id, :user_id, :name, :role, :created_by, folkmoot_now(), folkmoot_now())
on conflict (tenant_id, name) where removed_at is null do nothing
returning tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at;

-- name: user_by_id^
select tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at from app_user
where tenant_id = :tenant_id and user_id = :user_id;

-- name: user_by_name^
select tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at from app_user
where tenant_id = :tenant_id and name = :name and removed_at is null;

-- name: users
select tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at from app_user
where tenant_id = :tenant_id and user_id > :after and removed_at is null order by user_id limit :limit;

-- name: lock_owners
-- In one order for all. Whoever waited sees who is an owner once the others are done.
select user_id from app_user where tenant_id = :tenant_id and role = 'owner' and removed_at is null order by user_id for update;

-- name: lock_user^
select tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at from app_user
where tenant_id = :tenant_id and user_id = :user_id and removed_at is null for update;

-- name: set_role^
update app_user set role = :role, updated_at = folkmoot_now() where tenant_id = :tenant_id and user_id = :user_id
returning tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at;

-- name: revoke_keys!
-- Their own, and those of others that rest on them.
update api_key set revoked_at = folkmoot_now()
where tenant_id = :tenant_id and (user_id = :user_id or :user_id = any(rests_on)) and revoked_at is null;

-- name: delete_addresses!
delete from user_identity where tenant_id = :tenant_id and user_id = :user_id;

-- name: remove_user^
update app_user set removed_at = folkmoot_now(), updated_at = folkmoot_now() where tenant_id = :tenant_id and user_id = :user_id
returning tenant_id, user_id, name, role, created_by, created_at, updated_at, removed_at;
