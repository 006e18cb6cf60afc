-- name: insert^
insert into webhook (tenant_id, webhook_id, url, kinds, sealed_secret, created_by, created_at, updated_at)
values (:tenant_id, :webhook_id, :url, :kinds, :sealed_secret, :created_by, folkmoot_now(), folkmoot_now())
returning tenant_id, webhook_id, url, kinds, created_by, created_at, updated_at, disabled_at;

-- name: page
select tenant_id, webhook_id, url, kinds, created_by, created_at, updated_at, disabled_at from webhook
where tenant_id = :tenant_id and webhook_id > :after order by webhook_id limit :limit;

-- name: find^
select tenant_id, webhook_id, url, kinds, created_by, created_at, updated_at, disabled_at from webhook
where tenant_id = :tenant_id and webhook_id = :webhook_id;

-- name: delete^
-- Its messages go with it, the undelivered ones too.
delete from webhook where tenant_id = :tenant_id and webhook_id = :webhook_id
returning tenant_id, webhook_id, url, kinds, created_by, created_at, updated_at, disabled_at;

-- name: rotate^
-- The secret until now signs beside the new one for a while.
update webhook set previous_secret = sealed_secret, previous_until = folkmoot_now() + make_interval(secs => :overlap_seconds::float8),
    sealed_secret = :sealed_secret, updated_at = folkmoot_now()
where tenant_id = :tenant_id and webhook_id = :webhook_id
returning tenant_id, webhook_id, url, kinds, created_by, created_at, updated_at, disabled_at;

-- name: sealed_by_others
select tenant_id, webhook_id, sealed_secret, previous_secret from webhook
where substring(sealed_secret from 2 for 8) <> :key_id or substring(previous_secret from 2 for 8) <> :key_id
order by tenant_id, webhook_id limit :limit;

-- name: reseal!
-- Only what was read: a secret that was changed meanwhile is sealed with the new key already.
update webhook set sealed_secret = :sealed_secret, previous_secret = :previous_secret
where tenant_id = :tenant_id and webhook_id = :webhook_id and sealed_secret = :before;

-- name: messages
select message_id, kind, created_at, ready_at, attempts, delivered_at, given_up_at, last_error from outbox
where tenant_id = :tenant_id and webhook_id = :webhook_id
    and (:after_date::timestamptz is null or (created_at, message_id) < (:after_date::timestamptz, :after_id::uuid))
order by created_at desc, message_id desc limit :limit;

-- name: claim
-- Messages that are due, taken by moving their time on: whoever sends them and dies leaves them to be sent again. Endpoints are found
-- one after the other in the index, so that one with a million messages costs no more than one with a few, and takes no other's turn.
with recursive t as materialized (select folkmoot_now() as now),
endpoint as (
    (select tenant_id, webhook_id from outbox where ready_at is not null order by tenant_id, webhook_id limit 1)
    union all
    select n.tenant_id, n.webhook_id from endpoint e cross join lateral (
        select o.tenant_id, o.webhook_id from outbox o
        where o.ready_at is not null and (o.tenant_id, o.webhook_id) > (e.tenant_id, e.webhook_id)
        order by o.tenant_id, o.webhook_id limit 1) n),
picked as materialized (
    select o.tenant_id, o.message_id
    from endpoint e
    left join unnest(:busy_tenants::uuid[], :busy_webhooks::uuid[], :busy_counts::int[]) as b(tenant_id, webhook_id, count)
        using (tenant_id, webhook_id)
    cross join lateral (
        select x.tenant_id, x.message_id, x.ready_at, coalesce(b.count, 0) + row_number() over (order by x.ready_at) as place from (
            select tenant_id, message_id, ready_at from outbox
            where tenant_id = e.tenant_id and webhook_id = e.webhook_id and ready_at <= (select now from t)
            order by ready_at limit greatest(:limit_each::int - coalesce(b.count, 0), 0)) x) o
    order by o.place, o.ready_at limit :limit),
due as (
    select o.tenant_id, o.message_id from outbox o join picked using (tenant_id, message_id)
    where o.ready_at <= (select now from t) for update of o skip locked)
update outbox o set ready_at = t.now + make_interval(secs => :lease_seconds::float8), attempts = o.attempts + 1
from due cross join t, webhook w
where o.tenant_id = due.tenant_id and o.message_id = due.message_id and w.tenant_id = o.tenant_id and w.webhook_id = o.webhook_id
returning o.tenant_id, o.message_id, o.webhook_id, o.body, o.attempts, w.url, w.sealed_secret,
    case when w.previous_until > t.now then w.previous_secret end as previous_secret, w.disabled_at is not null as is_disabled, t.now;

-- name: delivered!
update outbox set delivered_at = folkmoot_now(), ready_at = null, last_error = null
where tenant_id = :tenant_id and message_id = :message_id and delivered_at is null and given_up_at is null;

-- name: try_later!
update outbox set ready_at = folkmoot_now() + make_interval(secs => :seconds::float8), last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: hold_others!
-- An endpoint that cannot be reached is not tried with every message at once. Those that somebody is settling now are skipped.
with others as (
    select tenant_id, message_id from outbox
    where tenant_id = :tenant_id and webhook_id = :webhook_id and ready_at is not null
    order by message_id for update skip locked)
update outbox o set ready_at = greatest(o.ready_at, folkmoot_now() + make_interval(secs => :seconds::float8))
from others where o.tenant_id = others.tenant_id and o.message_id = others.message_id;

-- name: give_up!
update outbox set given_up_at = folkmoot_now(), ready_at = null, last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: disable!
-- The endpoint says that it is gone for good: it is told nothing any more. What is being settled now finds that out itself.
with w as (
    update webhook set disabled_at = coalesce(disabled_at, folkmoot_now()), updated_at = folkmoot_now()
    where tenant_id = :tenant_id and webhook_id = :webhook_id returning tenant_id, webhook_id),
rest as (
    select o.tenant_id, o.message_id from outbox o join w using (tenant_id, webhook_id) where o.ready_at is not null
    order by o.message_id for update of o skip locked)
update outbox o set given_up_at = folkmoot_now(), ready_at = null, last_error = :error
from rest where o.tenant_id = rest.tenant_id and o.message_id = rest.message_id;

-- name: forget_old!
-- Of all tenants what nobody looks at any more.
delete from outbox o using (
    select tenant_id, message_id from outbox
    where ready_at is null and num_nulls(delivered_at, given_up_at) = 1 and created_at < folkmoot_now() - interval '30 days'
    order by created_at limit 1000) old
where o.tenant_id = old.tenant_id and o.message_id = old.message_id;
