-- The tables of a case store.
CREATE TABLE cases (
    number INTEGER PRIMARY KEY, signature TEXT NOT NULL UNIQUE, family TEXT NOT NULL, cause TEXT NOT NULL,
    stage TEXT NOT NULL, title TEXT NOT NULL, looked_like TEXT NOT NULL);
CREATE TABLE sightings (
    case_number INTEGER NOT NULL REFERENCES cases (number), key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
    command TEXT NOT NULL, subject TEXT NOT NULL, package TEXT NOT NULL, sha256 TEXT NOT NULL,
    host_class TEXT NOT NULL, status TEXT NOT NULL, tool TEXT NOT NULL);
CREATE TABLE notes (
    case_number INTEGER NOT NULL REFERENCES cases (number), key TEXT NOT NULL UNIQUE, at TEXT NOT NULL,
    text TEXT NOT NULL, solved INTEGER NOT NULL);
CREATE INDEX cases_by_family ON cases (family);
CREATE INDEX sightings_by_case ON sightings (case_number, at);
CREATE INDEX notes_by_case ON notes (case_number, at);
CREATE VIRTUAL TABLE words USING fts5 (signature, cause, title, looked_like, subjects, notes);
