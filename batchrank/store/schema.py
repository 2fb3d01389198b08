"""The tables of the store and the ordered migrations between its versions."""

from __future__ import annotations

APPLICATION_ID = 0x62726E6B  # "brnk"

MIGRATIONS: tuple[str, ...] = (
    """
    CREATE TABLE models (
        target   TEXT PRIMARY KEY,   -- hash of the server and model that were asked for
        profile  TEXT NOT NULL       -- JSON: what that server was found to be
    ) WITHOUT ROWID;

    CREATE TABLE jobs (
        id          INTEGER PRIMARY KEY,
        key         BLOB NOT NULL UNIQUE,
        settings    TEXT NOT NULL,   -- JSON: all that its rankings depend on
        fresh_since INTEGER NOT NULL DEFAULT 0  -- answers of earlier runs don't count
    );

    CREATE TABLE runs (
        id       INTEGER PRIMARY KEY,
        job      INTEGER NOT NULL REFERENCES jobs (id),
        input    TEXT NOT NULL,
        output   TEXT NOT NULL,
        started  REAL NOT NULL,      -- seconds since the epoch, UTC
        ended    REAL,               -- NULL while it runs, and for ever if it was killed
        exit     INTEGER,
        summary  TEXT                -- JSON
    );

    -- Which ranking stands at which place of a run's output.
    CREATE TABLE lines (
        run      INTEGER NOT NULL,
        position INTEGER NOT NULL,
        line     INTEGER NOT NULL,
        qid      INTEGER NOT NULL,   -- hash of the qid
        ranking  BLOB NOT NULL,      -- key of the ranking
        PRIMARY KEY (run, position)
    ) WITHOUT ROWID;
    CREATE INDEX lines_qid ON lines (run, qid);

    CREATE TABLE rankings (
        key      BLOB PRIMARY KEY,
        job      INTEGER NOT NULL,
        qid      INTEGER NOT NULL,   -- hash of the qid
        retry    INTEGER NOT NULL,   -- 1 where the next run tries again
        status   TEXT NOT NULL,
        ok INTEGER NOT NULL, repaired INTEGER NOT NULL, fallback INTEGER NOT NULL,
        error INTEGER NOT NULL, thin INTEGER NOT NULL, unmoved INTEGER NOT NULL,
        packed   BLOB NOT NULL
    ) WITHOUT ROWID;
    CREATE INDEX rankings_job ON rankings (job);

    CREATE TABLE answers (
        id       INTEGER PRIMARY KEY,
        key      BLOB NOT NULL UNIQUE,
        run      INTEGER NOT NULL,   -- which paid for it
        text     BLOB NOT NULL,      -- UTF-8; bytes, since a model may write what no text can hold
        reasoning BLOB NOT NULL,
        finish   TEXT NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        seconds  REAL NOT NULL,
        scored   BLOB                -- compressed JSON: what came with numbers; NULL for none
    );
    """,
    """
    ALTER TABLE runs ADD COLUMN lines INTEGER;  -- of its input, NULL until the last was read
    ALTER TABLE runs ADD COLUMN deadline REAL;  -- seconds since the epoch, NULL for none
    ALTER TABLE lines ADD COLUMN weight REAL NOT NULL DEFAULT 1;
    """,
    """
    ALTER TABLE rankings ADD COLUMN made_by INTEGER NOT NULL DEFAULT 0;  -- run
    -- The run whose ranking it builds on, 0 for none.
    ALTER TABLE rankings ADD COLUMN base INTEGER NOT NULL DEFAULT 0;
    DROP INDEX rankings_job;
    CREATE INDEX rankings_query ON rankings (job, qid, made_by);
    CREATE INDEX rankings_retry ON rankings (key) WHERE retry;
    ALTER TABLE runs ADD COLUMN written TEXT;  -- JSON: how its output was left, to know it again
    """,
    """
    ALTER TABLE lines ADD COLUMN digest INTEGER NOT NULL DEFAULT 0;  -- of the raw line, 0: unknown
    """,
    """
    ALTER TABLE runs ADD COLUMN steps TEXT NOT NULL DEFAULT '{}';  -- JSON: what was done after it
    """,
    """
    ALTER TABLE runs ADD COLUMN shard TEXT;  -- i/n, NULL where it is about the whole input
    """,
    """
    -- The exit code of the run with the steps after it, NULL until the last of them has ended.
    ALTER TABLE runs ADD COLUMN night INTEGER;
    UPDATE runs SET night = exit;
    """,
    """
    -- JSON: the names of the night's files by the key of the job spec; empty where none are known.
    ALTER TABLE runs ADD COLUMN names TEXT NOT NULL DEFAULT '{}';
    """,
    """
    -- With rowids: in a table without, a row of a kilobyte takes a page of its own besides, and the
    -- way to it is twice as long (https://sqlite.org/withoutrowid.html, 4).
    CREATE TABLE moved (
        key      BLOB PRIMARY KEY,
        job      INTEGER NOT NULL,
        qid      INTEGER NOT NULL,   -- hash of the qid
        retry    INTEGER NOT NULL,   -- 1 where the next run tries again
        status   TEXT NOT NULL,
        ok INTEGER NOT NULL, repaired INTEGER NOT NULL, fallback INTEGER NOT NULL,
        error INTEGER NOT NULL, thin INTEGER NOT NULL, unmoved INTEGER NOT NULL,
        packed   BLOB NOT NULL,
        made_by  INTEGER NOT NULL,   -- run
        base     INTEGER NOT NULL    -- the run whose ranking it builds on, 0 for none
    );
    INSERT INTO moved SELECT * FROM rankings;
    DROP TABLE rankings;
    ALTER TABLE moved RENAME TO rankings;
    CREATE INDEX rankings_query ON rankings (job, qid, made_by);
    CREATE INDEX rankings_retry ON rankings (key) WHERE retry;
    """,
    """
    -- What is odd about the query's line, a sentence a line.
    ALTER TABLE rankings ADD COLUMN odd TEXT NOT NULL DEFAULT '';
    CREATE INDEX rankings_odd ON rankings (key) WHERE odd <> '';
    """,
)

VERSION = len(MIGRATIONS)
