-- SPDX-License-Identifier: Apache-2.0
-- Quotas of templates and of what imported images take on the disk; NULL: as the settings say, 0: none.

ALTER TABLE tenants ADD COLUMN templates INTEGER;
ALTER TABLE tenants ADD COLUMN image_bytes INTEGER;
-- Tenants with templates could be deleted: these are nobody's, and must not be the next one's of that name.
DELETE FROM templates WHERE tenant NOT IN (SELECT name FROM tenants);
