-- name: insert_entry*!
insert into audit (tenant_id, at, user_id, user_name, key_id, channel, action, subject_kind, subject_id, detail)
values (:tenant_id, folkmoot_now(), :user_id, :user_name, :key_id, :channel, :action, :subject_kind, :subject_id, :detail::text::jsonb);

-- name: entries
-- A condition on what is not asked for would keep the planner from an index: null parameters fall away when a statement is planned for its values.
select tenant_id, audit_id, at, user_id, user_name, key_id, channel, action, subject_kind, subject_id, detail from audit
where tenant_id = :tenant_id
    and (:user_id::uuid is null or user_id = :user_id)
    and (:action::text is null or action = :action)
    and (:subject_kind::text is null or subject_kind = :subject_kind)
    and (:subject_id::uuid is null or subject_id = :subject_id)
    and (:since::timestamptz is null or at >= :since)
    and (:before::timestamptz is null or at < :before)
    and (:after_at::timestamptz is null or (at, audit_id) < (:after_at, :after_id))
order by at desc, audit_id desc limit :limit;
