-- name: lock!
-- Of those who give out addresses in a tenant one goes after the other: two that exchange the addresses of two users do not wait for each
-- other. Until the transaction ends.
select pg_advisory_xact_lock(hashtextextended('folkmoot.identities ' || :tenant_id::text, 0));

-- name: clear_address!
-- What the user had in this app, if it is another address.
delete from user_identity where tenant_id = :tenant_id and user_id = :user_id and app = :app and address <> :address;

-- name: insert_address^
-- No row: it is somebody's already.
insert into user_identity (tenant_id, user_id, app, address, created_by, created_at)
values (:tenant_id, :user_id, :app, :address, :created_by, folkmoot_now())
on conflict (tenant_id, app, address) do nothing
returning user_id, app, address, created_by, created_at;

-- name: by_address^
select user_id, app, address, created_by, created_at from user_identity
where tenant_id = :tenant_id and app = :app and address = :address;

-- name: of_user
select user_id, app, address, created_by, created_at from user_identity
where tenant_id = :tenant_id and user_id = :user_id order by app;

-- name: delete_address^
delete from user_identity where tenant_id = :tenant_id and user_id = :user_id and app = :app
returning user_id, app, address, created_by, created_at;

-- name: user_of^
select u.tenant_id, u.user_id, u.name, u.role, u.created_by, u.created_at, u.updated_at, u.removed_at
from user_identity i join app_user u using (tenant_id, user_id)
where i.tenant_id = :tenant_id and i.app = :app and i.address = :address and u.removed_at is null;

-- name: address_of$
select address from user_identity where tenant_id = :tenant_id and user_id = :user_id and app = :app;
