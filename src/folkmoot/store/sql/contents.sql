-- name: insert_content!
insert into content (tenant_id, run_id, content_id, size, characters, created_at)
values (:tenant_id, :run_id, :content_id, :size, :characters, folkmoot_now());

-- name: insert_chunks!
insert into content_chunk (tenant_id, run_id, content_id, number, piece)
select :tenant_id, :run_id, :content_id, u.number - 1, u.piece from unnest(:pieces::text[]) with ordinality as u(piece, number);

-- name: characters$
select characters from content where tenant_id = :tenant_id and run_id = :run_id and content_id = :content_id;

-- name: chunks
select piece from content_chunk
where tenant_id = :tenant_id and run_id = :run_id and content_id = :content_id and number between :first::int and :last::int
order by number;

-- name: sweep!
-- What was kept and never referred to goes: its worker was lost before the commit. Younger ones may still be on their way.
with old as (
    select c.tenant_id, c.run_id, c.content_id, exists (
        select from item i where i.tenant_id = c.tenant_id and i.run_id = c.run_id and i.kind = 'toolResult'
            and i.body ->> 'tool_result_id' = c.content_id::text) as is_referred_to
    from content c where not c.is_referred_to and c.created_at < folkmoot_now() - interval '1 hour' order by c.created_at limit 1000),
gone as (
    delete from content c using old
    where c.tenant_id = old.tenant_id and c.run_id = old.run_id and c.content_id = old.content_id and not old.is_referred_to)
update content c set is_referred_to = true from old
where c.tenant_id = old.tenant_id and c.run_id = old.run_id and c.content_id = old.content_id and old.is_referred_to;
