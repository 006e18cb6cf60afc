-- name: secret_by_id^
select s.*, n.name as namespace from secret s join namespace n using (tenant_id, namespace_id)
where s.tenant_id = :tenant_id and s.secret_id = :secret_id;

-- name: secret_by_name^
select s.*, n.name as namespace from secret s join namespace n using (tenant_id, namespace_id)
where s.tenant_id = :tenant_id and n.name = :namespace and s.name = :name;

-- name: insert_secret$
-- Of several at once, one inserts; the others wait for its commit and insert nothing.
insert into secret (tenant_id, secret_id, namespace_id, name, sealed, sealed_by, created_by, created_at, updated_at)
values (:tenant_id, :secret_id, :namespace_id, :name, :sealed, :sealed_by, :created_by, folkmoot_now(), folkmoot_now())
on conflict (tenant_id, namespace_id, name) do nothing returning secret_id;

-- name: replace_secret$
update secret set sealed = :sealed, sealed_by = :sealed_by, updated_at = folkmoot_now()
where tenant_id = :tenant_id and secret_id = :secret_id returning secret_id;

-- name: delete_secret$
delete from secret where tenant_id = :tenant_id and secret_id = :secret_id returning secret_id;

-- name: secrets
select s.*, n.name as namespace from secret s join namespace n using (tenant_id, namespace_id)
where s.tenant_id = :tenant_id and s.namespace_id = :namespace_id and s.name > :after order by s.name limit :limit;

-- name: sealed_by_others
select s.*, n.name as namespace from secret s join namespace n using (tenant_id, namespace_id)
where s.sealed_by <> :key_id and (s.tenant_id, s.secret_id) > (:tenant_id, :secret_id) order by s.tenant_id, s.secret_id limit :limit;

-- name: reseal$
-- Only what was read is sealed again: a value that was set meanwhile is newer.
update secret set sealed = :sealed, sealed_by = :sealed_by
where tenant_id = :tenant_id and secret_id = :secret_id and sealed = :before returning secret_id;

-- name: vault_check$
select sealed from vault_check;

-- name: insert_vault_check!
-- Of several at once, one inserts; the others wait for its commit and insert nothing.
insert into vault_check (sealed) values (:sealed) on conflict (is_only) do nothing;

-- name: replace_vault_check!
update vault_check set sealed = :sealed;
