BEGIN TRANSACTION;
CREATE TABLE migrations (
  component TEXT NOT NULL, version INTEGER NOT NULL, applied_at TEXT NOT NULL, PRIMARY KEY (component, version)
);
INSERT INTO "migrations" VALUES('app',1,'2025-10-09T08:53:20.250000+00:00');
CREATE TABLE run_events (
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  seq INTEGER NOT NULL,
  run_id TEXT,
  epoch INTEGER NOT NULL,
  method TEXT NOT NULL,
  namespace TEXT,
  payload BLOB NOT NULL,
  at INTEGER NOT NULL,
  node TEXT,
  name TEXT,
  PRIMARY KEY (thread_id, seq)
);
INSERT INTO "run_events" VALUES('t',1,'ended',1,'messages','["model:1"]',X'7B2274657874223A226F6E65227D',1760000000000,NULL,NULL);
INSERT INTO "run_events" VALUES('t',2,'ended',1,'messages','["model:1"]',X'7B2274657874223A2274776F227D',1760000000000,NULL,NULL);
INSERT INTO "run_events" VALUES('t',3,'ended',1,'messages','["model:1"]',X'7B2274657874223A227468726565227D',1760000000000,NULL,NULL);
INSERT INTO "run_events" VALUES('t',4,'ended',1,'custom',NULL,X'7B2274657874223A227475726E227D',1760000000000,NULL,'pizzabot.turn');
INSERT INTO "run_events" VALUES('t',5,'ended',1,'lifecycle',NULL,X'7B2274657874223A22656E64227D',1760000000000,NULL,NULL);
INSERT INTO "run_events" VALUES('t',6,'failed',1,'messages',NULL,X'7B2274657874223A22626164227D',1760000000000,NULL,NULL);
INSERT INTO "run_events" VALUES('t',7,'running',1,'messages',NULL,X'7B2274657874223A22676F696E67227D',1760000000000,NULL,NULL);
CREATE TABLE runs (
  run_id TEXT PRIMARY KEY NOT NULL,
  thread_id TEXT NOT NULL REFERENCES threads (thread_id) ON DELETE CASCADE,
  owner TEXT NOT NULL,
  status TEXT NOT NULL,
  input TEXT NOT NULL,
  options TEXT NOT NULL,
  created_at TEXT NOT NULL,
  epoch INTEGER NOT NULL DEFAULT 0,
  attempt INTEGER NOT NULL DEFAULT 0,
  server_id TEXT,
  started_at TEXT,
  ended_at TEXT,
  cancel_requested_at TEXT,
  cancel_reason TEXT,
  idempotency_key TEXT,
  message_id TEXT,
  error_code TEXT,
  error TEXT,
  fingerprint TEXT NOT NULL,
  position INTEGER NOT NULL,
  replacement INTEGER NOT NULL,
  began INTEGER,
  first_seq INTEGER
);
INSERT INTO "runs" VALUES('ended','t','local','success','{"messages":[{"role":"user","content":"čaj for ended 🫖"}]}','{"config":{}}','2025-10-09T08:53:20.750000+00:00',1,1,'old','2025-10-09T08:53:21.000000+00:00','2025-10-09T08:53:21.250000+00:00',NULL,NULL,'key','m1',NULL,NULL,'same',-1,1,1,1);
INSERT INTO "runs" VALUES('failed','t','local','error','{"messages":[{"role":"user","content":"čaj for failed 🫖"}]}','{"config":{}}','2025-10-09T08:53:21.500000+00:00',1,1,'old','2025-10-09T08:53:21.750000+00:00','2025-10-09T08:53:22.000000+00:00',NULL,NULL,NULL,NULL,'GENERAL','why','same',-1,1,2,6);
INSERT INTO "runs" VALUES('running','t','local','cancelling','{"messages":[{"role":"user","content":"čaj for running 🫖"}]}','{"config":{}}','2025-10-09T08:53:22.250000+00:00',1,1,'old','2025-10-09T08:53:22.500000+00:00',NULL,'2025-10-09T08:53:23.250000+00:00','superseded',NULL,'m2',NULL,NULL,'same',-1,1,3,7);
INSERT INTO "runs" VALUES('second','t','local','pending','{"messages":[{"role":"user","content":"čaj for second 🫖"}]}','{"config":{}}','2025-10-09T08:53:22.750000+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'same',1,0,NULL,NULL);
INSERT INTO "runs" VALUES('third','t','local','pending','{"messages":[{"role":"user","content":"čaj for third 🫖"}]}','{"config":{}}','2025-10-09T08:53:23.000000+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'same',2,0,NULL,NULL);
INSERT INTO "runs" VALUES('first','t','local','pending','{"messages":[{"role":"user","content":"čaj for first 🫖"}]}','{"config":{}}','2025-10-09T08:53:23.250000+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,NULL,'same',0,1,NULL,NULL);
INSERT INTO "runs" VALUES('hers','hers','anna','pending','{"messages":[{"role":"user","content":"čaj for hers 🫖"}]}','{"config":{}}','2025-10-09T08:53:23.500000+00:00',0,0,NULL,NULL,NULL,NULL,NULL,NULL,'m1',NULL,NULL,'same',-1,1,NULL,NULL);
CREATE TABLE settings (
  owner TEXT NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  updated_at TEXT NOT NULL,
  PRIMARY KEY (owner, key)
);
INSERT INTO "settings" VALUES('local','theme','{"dark":true}','2025-10-09T08:53:23.750000+00:00');
CREATE TABLE threads (
  thread_id TEXT PRIMARY KEY NOT NULL,
  owner TEXT NOT NULL,
  title TEXT NOT NULL,
  source TEXT NOT NULL,
  created_at TEXT NOT NULL,
  last_activity_at TEXT NOT NULL,
  next_seq INTEGER NOT NULL DEFAULT 1,
  model_id TEXT,
  metadata TEXT NOT NULL DEFAULT '{}'
);
INSERT INTO "threads" VALUES('t','local','Pizza','user','2025-10-09T08:53:20.500000+00:00','2025-10-09T08:53:23.250000+00:00',8,NULL,'{"tags":["a"]}');
INSERT INTO "threads" VALUES('hers','anna','New conversation','user','2025-10-09T08:53:23.500000+00:00','2025-10-09T08:53:23.500000+00:00',1,NULL,'{}');
CREATE INDEX threads_by_activity ON threads (owner, last_activity_at);
CREATE UNIQUE INDEX runs_active ON runs (thread_id) WHERE status IN ('running', 'cancelling');
CREATE INDEX runs_queue ON runs (thread_id, position) WHERE status = 'pending';
CREATE INDEX runs_unfinished ON runs (created_at) WHERE status IN ('pending', 'running', 'cancelling');
CREATE UNIQUE INDEX runs_by_key ON runs (owner, idempotency_key) WHERE idempotency_key IS NOT NULL;
CREATE UNIQUE INDEX runs_by_message ON runs (thread_id, message_id) WHERE message_id IS NOT NULL;
CREATE INDEX runs_by_beginning ON runs (thread_id, began, first_seq);
COMMIT;
