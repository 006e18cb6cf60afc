-- name: claim
-- Of each channel the messages that are due, no more than a few with those under way; nobody else gets them while the lease lasts. Channels are
-- found one after the other in the index, so that one for which ten thousand wait costs no more than one with a few; and each message is locked by
-- its key in a subquery of its own, since a join may read all there are.
with recursive t as materialized (select folkmoot_now() as now),
channel as (
    (select tenant_id, channel_id from channel_message where ready_at is not null order by tenant_id, channel_id limit 1)
    union all
    select n.tenant_id, n.channel_id from channel c cross join lateral (
        select m.tenant_id, m.channel_id from channel_message m
        where m.ready_at is not null and (m.tenant_id, m.channel_id) > (c.tenant_id, c.channel_id)
        order by m.tenant_id, m.channel_id limit 1) n),
picked as materialized (
    select m.tenant_id, m.message_id, m.place
    from channel c
    left join unnest(:busy_tenants::uuid[], :busy_channels::uuid[], :busy_counts::int[]) as b(tenant_id, channel_id, count)
        using (tenant_id, channel_id)
    cross join lateral (
        select w.tenant_id, w.message_id, w.ready_at, row_number() over (order by w.ready_at) as place from (
            select tenant_id, message_id, ready_at from channel_message
            where tenant_id = c.tenant_id and channel_id = c.channel_id and ready_at <= (select now from t)
            order by ready_at limit greatest(:limit_each::int - coalesce(b.count, 0), 0)) w) m
    order by m.place limit :limit),
taken as (
    select m.tenant_id, m.message_id from picked p cross join lateral (
        select w.tenant_id, w.message_id from channel_message w
        where w.tenant_id = p.tenant_id and w.message_id = p.message_id and w.ready_at <= (select now from t) for update skip locked) m)
update channel_message m set
    ready_at = t.now + make_interval(secs => :lease_seconds), leased_until = t.now + make_interval(secs => :lease_seconds), attempts = m.attempts + 1
from taken cross join t
where m.tenant_id = taken.tenant_id and m.message_id = taken.message_id
returning m.tenant_id, m.message_id, m.channel_id, m.run_id, m.chat_item_id, m.kind, m.body, m.sealed_secret, m.attempts, m.created_at, t.now,
    (select a.id from agent_run a where a.tenant_id = m.tenant_id and a.run_id = m.run_id) as agent_run,
    (select n.name || '/' || d.name from definition d join namespace n using (tenant_id, namespace_id)
        where d.tenant_id = m.tenant_id and d.definition_id = m.channel_id) as channel_name;

-- name: delivered!
update channel_message set delivered_at = folkmoot_now(), ready_at = null, sealed_secret = null, last_error = null, reference = :reference
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: try_later!
update channel_message set ready_at = folkmoot_now() + make_interval(secs => :seconds), leased_until = null, last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: put_off!
-- It was not tried, and no try is counted.
update channel_message set ready_at = folkmoot_now() + make_interval(secs => :seconds), leased_until = null, attempts = attempts - 1, last_error = :error
where tenant_id = :tenant_id and message_id = :message_id and ready_at is not null;

-- name: discard_request$
-- A request that is settled is not sent any more, unless somebody is sending it. Whether it was on its way, and is no more.
update channel_message set given_up_at = folkmoot_now(), ready_at = null, sealed_secret = null, last_error = :error
where tenant_id = :tenant_id and chat_item_id = :chat_item_id and kind = 'consent.requested' and ready_at is not null
    and (leased_until is null or leased_until <= folkmoot_now())
returning true;

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

-- name: earlier_outcome^
select outcome, told_at is not null as is_told from inbound_message where tenant_id = :tenant_id and channel_id = :channel_id and inbound_hash = :inbound_hash;

-- name: note_inbound!
insert into inbound_message (tenant_id, channel_id, inbound_hash, received_at, outcome)
values (:tenant_id, :channel_id, :inbound_hash, folkmoot_now(), :outcome) on conflict do nothing;

-- name: note_told!
update inbound_message set told_at = coalesce(told_at, folkmoot_now())
where tenant_id = :tenant_id and channel_id = :channel_id and inbound_hash = :inbound_hash;

-- name: forget_old!
-- What was settled a month ago is of no use any more once its run has ended: a request that waits longer is changed where it stands when it is
-- decided. What came in as long ago is not sent again.
with gone as (
    delete from channel_message m where m.ready_at is null and m.created_at < folkmoot_now() - interval '30 days'
        and not exists (select from agent_run a where a.tenant_id = m.tenant_id and a.run_id = m.run_id and a.completed_at is null))
delete from inbound_message where received_at < folkmoot_now() - interval '30 days';
