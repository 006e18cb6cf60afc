-- name: claim
-- Of each channel the messages that are due, no more than a few with those under way; nobody else gets them while the lease lasts.
with t as materialized (select folkmoot_now() as now),
channel as (
    -- from one channel to the next by the index, however much waits for any of them
    select distinct m.tenant_id, m.channel_id from channel_message m cross join t where m.ready_at <= t.now),
due as (
    select m.tenant_id, m.message_id, row_number() over (partition by m.tenant_id, m.channel_id order by m.ready_at) as place
    from channel c
    join lateral (
        select * from channel_message w cross join t
        where w.tenant_id = c.tenant_id and w.channel_id = c.channel_id and w.ready_at is not null and w.ready_at <= t.now
        order by w.ready_at limit greatest(:limit_each::int - coalesce((
            select sum(b.count)::int from unnest(:busy_tenants::uuid[], :busy_channels::uuid[], :busy_counts::int[]) as b(tenant_id, channel_id, count)
            where b.tenant_id = c.tenant_id and b.channel_id = c.channel_id), 0), 0)) m on true),
taken as (
    select m.tenant_id, m.message_id from channel_message m join due using (tenant_id, message_id) cross join t
    where m.ready_at <= t.now order by due.place limit :limit for update of m skip locked)
update channel_message m set ready_at = t.now + make_interval(secs => :lease_seconds), attempts = m.attempts + 1
from taken cross join t
where m.tenant_id = taken.tenant_id and m.message_id = taken.message_id
returning m.tenant_id, m.message_id, m.channel_id, m.run_id, m.chat_item_id, m.kind, m.body, m.sealed_secret, m.attempts, m.created_at, t.now;

-- name: delivered!
update channel_message set delivered_at = folkmoot_now(), ready_at = null, sealed_secret = null, last_error = null, reference = :reference
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: try_later!
update channel_message set ready_at = folkmoot_now() + make_interval(secs => :seconds), last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: give_up!
update channel_message set given_up_at = folkmoot_now(), ready_at = null, sealed_secret = null, last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: sealed_by_others
-- As with webhooks: what is sealed names its key after a first byte.
select tenant_id, message_id, sealed_secret from channel_message
where sealed_secret is not null and substring(sealed_secret from 2 for 8) <> :key_id limit :limit;

-- name: reseal!
update channel_message set sealed_secret = :sealed_secret
where tenant_id = :tenant_id and message_id = :message_id and sealed_secret = :before;

-- name: request_reference^
-- What the channel gave for the request of a consent, and whether the request is still on its way.
select reference, delivered_at is not null as is_delivered, ready_at is not null as is_waiting from channel_message
where tenant_id = :tenant_id and chat_item_id = :chat_item_id and kind = 'consent.requested';

-- name: of_run
select message_id, kind, created_at, ready_at, attempts, delivered_at, given_up_at, last_error from channel_message
where tenant_id = :tenant_id and run_id = :run_id order by created_at, message_id limit 1000;

-- name: page_of_run
-- The oldest first; those after a message.
select message_id, kind, created_at, ready_at, attempts, delivered_at, given_up_at, last_error, chat_item_id from channel_message
where tenant_id = :tenant_id and run_id = :run_id
    and (:after_date::timestamptz is null or (created_at, message_id) > (:after_date::timestamptz, :after_id::uuid))
order by created_at, message_id limit :limit::bigint;

-- name: earlier_outcome$
select outcome from inbound_message where tenant_id = :tenant_id and channel_id = :channel_id and inbound_hash = :inbound_hash;

-- name: note_inbound!
insert into inbound_message (tenant_id, channel_id, inbound_hash, received_at, outcome)
values (:tenant_id, :channel_id, :inbound_hash, folkmoot_now(), :outcome) on conflict do nothing;

-- name: forget_old!
-- What was settled a month ago is of no use any more, and what came in as long ago is not sent again.
with gone as (
    delete from channel_message where ready_at is null and created_at < folkmoot_now() - interval '30 days')
delete from inbound_message where received_at < folkmoot_now() - interval '30 days';
