-- SPDX-License-Identifier: Apache-2.0
-- What the owner of a session wrote on it: a name, labels, the image that was asked for.

ALTER TABLE sessions ADD COLUMN notes TEXT; -- JSON
