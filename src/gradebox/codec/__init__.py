"""Values as plain data, for a line on which nothing may be unpickled."""
