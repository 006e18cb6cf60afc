-- name: earlier^
select body_hash, result_id from idempotency_key
where tenant_id = :tenant_id and user_id = :user_id and route = :route and key = :key and created_at > folkmoot_now() - interval '24 hours';

-- name: keep!
insert into idempotency_key (tenant_id, user_id, route, key, body_hash, result_id, created_at)
values (:tenant_id, :user_id, :route, :key, :body_hash, :result_id, folkmoot_now())
on conflict (tenant_id, user_id, route, key) do update set body_hash = excluded.body_hash, result_id = excluded.result_id, created_at = excluded.created_at;

-- name: forget_old!
delete from idempotency_key where created_at < folkmoot_now() - interval '24 hours';
