"""What commands say, as plain text or for --json; nothing is asked, read or changed here."""
