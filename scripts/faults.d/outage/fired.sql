CREATE TABLE IF NOT EXISTS fired (
  id    ${serial} PRIMARY KEY,
  thing VARCHAR(32) NOT NULL
);
