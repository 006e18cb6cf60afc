-- name: tenant_of$
-- By the id alone: whoever calls from outside is of no tenant.
select tenant_id from definition where definition_id = :channel_id and kind = 'Channel' and deleted_at is null;

-- name: links_to$
-- Whether a channel that is there links to a secret, in a version that may be used.
select exists (
    select from definition d join definition_version v on v.tenant_id = d.tenant_id and v.definition_id = d.definition_id
    where d.tenant_id = :tenant_id and d.kind = 'Channel' and d.deleted_at is null and exists (
        select from jsonb_each(v.body -> 'secrets') s where s.value ->> 'definition_id' = :secret_id::uuid::text));

-- name: moment$
select folkmoot_now();

-- name: of_apps
-- All channels of these apps, of all tenants, for workers that look for what has come.
select d.tenant_id, d.definition_id as channel_id, v.body ->> 'app' as app, n.name || '/' || d.name as name
from definition d join namespace n using (tenant_id, namespace_id)
join lateral (
    select w.body from definition_version w
    where w.tenant_id = d.tenant_id and w.definition_id = d.definition_id and not w.is_disabled order by w.number desc limit 1) v on true
where d.kind = 'Channel' and d.deleted_at is null and v.body ->> 'app' = any(:apps::text[])
order by d.tenant_id, d.definition_id;

-- name: take_look$
-- Whoever looks into a channel has it for so long; null: somebody has it, or it was looked into just now.
insert into channel_look (tenant_id, channel_id, until) values (:tenant_id, :channel_id, folkmoot_now() + make_interval(secs => :seconds))
on conflict (tenant_id, channel_id) do update set until = excluded.until where channel_look.until <= folkmoot_now()
returning true;

-- name: put_off_look!
update channel_look set until = folkmoot_now() + make_interval(secs => :seconds) where tenant_id = :tenant_id and channel_id = :channel_id;
