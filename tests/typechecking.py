"""How annotations are checked while the tests run: as PEP 484 says, an int is a float too."""

from beartype import BeartypeConf, beartype

check = beartype(conf=BeartypeConf(is_pep484_tower=True))
