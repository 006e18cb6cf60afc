-- name: conversation$
select true from conversation where tenant_id = :tenant_id and conversation_id = :conversation_id;

-- name: open_conversation!
insert into conversation (tenant_id, conversation_id, created_by, created_at)
values (:tenant_id, :conversation_id, :created_by, folkmoot_now()) on conflict do nothing;

-- name: say!
insert into chat_item (tenant_id, chat_item_id, conversation_id, number, kind, author_name, author_id, created_at, updated_at, run_id, text)
values (:tenant_id, :chat_item_id, :conversation_id, folkmoot_next_chat_number(:tenant_id, :conversation_id), 'message', :author_name,
        :author_id, folkmoot_now(), folkmoot_now(), :run_id, :text);

-- name: page
-- The newest first; those before a number.
select c.*, a.id as agent_run from chat_item c left join agent_run a on a.tenant_id = c.tenant_id and a.run_id = c.run_id
where c.tenant_id = :tenant_id and c.conversation_id = :conversation_id and (:before::bigint is null or c.number < :before::bigint)
order by c.number desc limit :limit;

-- name: get^
select c.*, a.id as agent_run from chat_item c left join agent_run a on a.tenant_id = c.tenant_id and a.run_id = c.run_id
where c.tenant_id = :tenant_id and c.chat_item_id = :chat_item_id;

-- name: of_secret$
-- Which of a conversation's requests has this secret.
select chat_item_id from chat_item
where tenant_id = :tenant_id and conversation_id = :conversation_id and kind = 'consent' and secret_hash = :secret_hash
order by number desc limit 1;

-- name: try_secret^
-- One try of a request's secret: of ten, and only while it was not used. The try counts whatever comes of it.
update chat_item set secret_tries = secret_tries + 1
where tenant_id = :tenant_id and chat_item_id = :chat_item_id and kind = 'consent' and secret_tries < 10
returning secret_hash, secret_used_at is not null as is_used;

-- name: use_secret$
-- Once: of two who have it one is first.
update chat_item set secret_used_at = folkmoot_now()
where tenant_id = :tenant_id and chat_item_id = :chat_item_id and secret_used_at is null and secret_hash = :secret_hash
returning true;
