"""Modelled on LDSSA/ds-prep-course-2021 and LDSSA/batch4-students: exercise notebooks.

Typical are values that are compared by a hash of their text, globals that one cell after another
changes, classes that inherit, objects of them that a locked cell makes, a module and a text file
beside the notebook, a file left open, questions of choice, and the axes of a figure kept in a name.
"""

import hashlib

from courses import Course, answer, locked, plain, test


def digest(value: object) -> str:
    """Return the hash that the tests expect of a value."""
    return hashlib.blake2b(bytes(str(value), encoding="utf8"), digest_size=5).hexdigest()


LOG = "Wind from the west\n\nthe sea is calm\nthe Wind has turned\n"

COURSE = Course(
    files={
        "harbour.py": """
        import random

        def random_load():
            return random.randint(3, 6)

        class Cargo:
            kind = "goods"

            def describe(self):
                return f"{self.kind}: {self.weight()} t"

            def weight(self):
                return 1
        """,
        "log.txt": LOG,
    },
    cells=[
        locked(
            "tools",
            """
            import hashlib
            import inspect
            import math

            def _hash(s):
                return hashlib.blake2b(bytes(str(s), encoding="utf8"), digest_size=5).hexdigest()

            from harbour import Cargo, random_load
            """,
        ),
        answer(
            "ship",
            """
            class Ship:
                # with a name, a length in metres, a flag that is "none" at first,
                # and a method greet
                ### BEGIN SOLUTION
                def __init__(self, name, length):
                    self.name = name
                    self.length = length
                    self.flag = "none"

                def greet(self):
                    return f"This is {self.name}, {self.length} metres long."
                ### END SOLUTION
            """,
        ),
        locked("first-ship", 'ship = Ship(name="Aurora", length=31)'),
        test(
            "ship-attributes",
            1,
            f"""
            assert _hash(ship.name) == "{digest("Aurora")}", "look at the name"
            assert _hash(ship.length) == "{digest(31)}", "look at the length"
            assert _hash(type(ship.length)) == "{digest(int)}", "is the length a number?"
            assert _hash(ship.flag) == "{digest("none")}", "look at the flag"
            assert _hash(ship.greet()) == "{digest("This is Aurora, 31 metres long.")}"
            print("all is well aboard")
            """,
        ),
        test(
            "ship-signature",
            1,
            """
            assert list(inspect.signature(Ship.__init__).parameters) == ["self", "name", "length"]
            assert inspect.isclass(Ship)
            """,
        ),
        locked("greeting", "print(ship.greet())"),
        answer(
            "tanker",
            """
            # a Tanker is a Ship with a load of 0, and load() multiplies the length of the ship by
            # random_load() and keeps it as its load
            ### BEGIN SOLUTION
            class Tanker(Ship):
                def __init__(self, name, length):
                    super().__init__(name, length)
                    self.cargo = 0

                def load(self):
                    self.cargo = self.length * random_load()
            ### END SOLUTION
            """,
        ),
        locked("first-tanker", 'tanker = Tanker("Bertha", 200)'),
        test(
            "tanker-inherits",
            2,
            f"""
            assert _hash(tanker.greet()) == "{digest("This is Bertha, 200 metres long.")}"
            assert _hash(isinstance(tanker, Ship)) == "{digest(True)}", "a tanker is a ship"
            assert _hash(isinstance(ship, Tanker)) == "{digest(False)}"
            assert issubclass(Tanker, Ship) and Tanker.__bases__ == (Ship,)
            assert tanker.cargo == 0
            tanker.load()
            assert _hash(600 <= tanker.cargo <= 1200) == "{digest(True)}", "look at load()"
            print("kinds:", type(ship), type(tanker))
            """,
        ),
        answer(
            "grain",
            """
            # Grain is a Cargo of kind "grain" that weighs 40 t
            ### BEGIN SOLUTION
            class Grain(Cargo):
                kind = "grain"

                def weight(self):
                    return 40
            ### END SOLUTION
            """,
        ),
        test(
            "grain-overrides",
            1,
            f"""
            assert isinstance(Grain(), Cargo), "Grain is to inherit"
            assert _hash(Grain().describe()) == "{digest("grain: 40 t")}"
            assert "describe" not in vars(Grain), "there is no need to write describe again"
            """,
        ),
        answer(
            "choice",
            '# choice = "a", "b" or "c"\n### BEGIN SOLUTION\nchoice = "b"\n### END SOLUTION',
        ),
        test(
            "choice-letter",
            1,
            f"""
            assert isinstance(choice, str)
            assert _hash(choice.lower()) == "{digest("b")}", "think again"
            """,
        ),
        answer(
            "read",
            """
            # open log.txt as file, and read all of it into text
            ### BEGIN SOLUTION
            file = open("log.txt")
            text = file.read()
            ### END SOLUTION
            """,
        ),
        test(
            "read-text",
            1,
            f"""
            assert isinstance(text, str), "one text, not a list"
            assert _hash(len(text)) == "{digest(len(LOG))}"
            assert _hash(text[0]) == "{digest("W")}"
            """,
        ),
        answer(
            "lines",
            """
            # go back to the start of the file, and read its lines into a list named lines
            ### BEGIN SOLUTION
            file.seek(0)
            lines = file.readlines()
            file.close()
            ### END SOLUTION
            """,
        ),
        test(
            "lines-of-file",
            1,
            f"""
            assert isinstance(lines, list)
            assert _hash(len(lines)) == "{digest(4)}"
            assert all(isinstance(line, str) for line in lines)
            """,
        ),
        answer(
            "cleaned",
            """
            # take away the ends of the lines, and lines that are empty; keep the rest in lines
            ### BEGIN SOLUTION
            lines = [line.strip() for line in lines]
            lines = [line for line in lines if line]
            ### END SOLUTION
            """,
        ),
        test(
            "cleaned-lines",
            1,
            f"""
            assert _hash(len(lines)) == "{digest(3)}", "are there empty lines?"
            assert _hash(lines[1]) == "{digest("the sea is calm")}"
            """,
        ),
        answer(
            "words",
            """
            # words is a sorted list of all words in lower case, each once
            ### BEGIN SOLUTION
            words = sorted(set(" ".join(lines).lower().split()))
            ### END SOLUTION
            """,
        ),
        test(
            "words-once",
            1,
            f"""
            assert isinstance(words, list), "a list, please"
            assert all([word.islower() for word in words])
            assert _hash(len(words)) == "{digest(9)}"
            assert _hash(words[0]) == "{digest("calm")}", "are they sorted?"
            """,
        ),
        plain("import matplotlib.pyplot as plt"),
        answer(
            "chart",
            """
            # draw how often the wind is named in each line, as bars with the title "wind"
            axis = plt.subplots()[1]
            ### BEGIN SOLUTION
            counts = [line.lower().count("wind") for line in lines]
            axis.bar(range(len(counts)), counts, color="red")
            axis.set_title("wind")
            axis.set_xlabel("line")
            ### END SOLUTION
            """,
        ),
        test(
            "chart-bars",
            2,
            """
            import numpy as np

            heights = np.array([patch.get_height() for patch in axis.patches])
            np.testing.assert_allclose(heights, [1, 0, 1])
            assert axis.patches[0].get_facecolor() == (1.0, 0.0, 0.0, 1.0), "red bars, please"
            assert axis.get_title() == "wind"
            assert {axis.get_xlabel()} == {"line"}
            """,
        ),
        answer(
            "route",
            '''
            def route(stops, **speeds):
                """Return a dictionary: the hours to each stop, a pair of name and miles."""
                ### BEGIN SOLUTION
                speed = speeds.get("speed", 10)
                return {name: miles / speed for name, miles in stops}
                ### END SOLUTION
            ''',
        ),
        test(
            "route-hours",
            1,
            f"""
            assert isinstance(route([]), dict)
            hours = route([("Bergen", 120), ("Oslo", 300)])
            assert _hash(hours) == "{digest({"Bergen": 12.0, "Oslo": 30.0})}"
            assert _hash(route([("Kiel", 60)], speed=20)) == "{digest({"Kiel": 3.0})}"
            """,
        ),
        test(
            "route-source",
            0.5,
            """
            code = inspect.getsource(route)
            assert "import" not in code, "nothing needs to be imported"
            """,
        ),
    ],
    changes={
        "another": {
            "ship": """
            class Ship:
                flag = "none"

                def __init__(self, name, length):
                    self.name, self.length = name, length

                def greet(self):
                    return "This is {}, {} metres long.".format(self.name, self.length)
            """,
            "tanker": """
            class Tanker(Ship):
                cargo = 0

                def load(self):
                    self.cargo = sum(self.length for _ in range(random_load()))
            """,
            "grain": """
            import harbour

            class Grain(harbour.Cargo):
                def __init__(self):
                    self.kind = "grain"

                def weight(self):
                    return 40
            """,
            "choice": "choice = 'B'",
            "read": """
            from pathlib import Path

            file = Path("log.txt").open()
            text = "".join(file)
            """,
            "lines": """
            file.seek(0)
            lines = list(file)
            """,
            "cleaned": "lines = [line for line in text.splitlines() if line.strip() != '']",
            "words": """
            words = []
            for line in lines:
                for word in line.split():
                    if word.lower() not in words:
                        words.append(word.lower())
            words.sort()
            """,
            "chart": """
            figure, axis = plt.subplots()
            plt.title("wind")
            plt.bar([0, 1, 2], [1, 0, 1], color=(1, 0, 0))
            plt.xlabel("line")
            """,
            "route": """
            def route(stops, speed=10):
                hours = {}
                for name, miles in stops:
                    hours[name] = miles / speed
                return hours
            """,
        },
        "wrong": {
            "ship": """
            class Ship:
                def __init__(self, length, name):
                    self.name = name
                    self.length = str(length)
                    self.flag = None

                def greet(self):
                    print(f"This is {self.name}, {self.length} metres long.")
            """,
            "tanker": """
            class Tanker:
                def __init__(self, name, length):
                    self.ship = Ship(name, length)
                    self.cargo = 0

                def load(self):
                    return self.ship.length * random_load()
            """,
            "grain": """
            class Grain:
                def describe(self):
                    return "grain: 40 t"
            """,
            "choice": "choice = 'c'",
            "lines": "lines = file.readlines()",
            "cleaned": "lines = [line for line in lines if line]",
            "words": "words = set(' '.join(lines).lower().split())",
            "chart": """
            axis = plt.subplots()[1]
            axis.plot([1, 0, 1])
            axis.set_title("wind")
            """,
            "route": """
            def route(stops, speed=10):
                import itertools
                return [miles / speed for name, miles in stops]
            """,
        },
        "careless": {
            "ship": """
            class Ship:
                def __init__(self, name, length):
                    self.name = name
                    self.length = length
                    self.flag = "none"

                def greet(self):
                    return f"This is {self.name}, {self.length} meters long."
            """,
            "tanker": """
            class Tanker(Ship):
                def __init__(self, name, length):
                    super().__init__(name, length)
                    self.cargo = 0

                def load(self):
                    self.cargo += random_load()
            """,
            "grain": """
            class Grain(Cargo):
                def describe(self):
                    return "grain: 40 t"
            """,
            "choice": "choice = b = 'B '",
            "read": "file = open('log.txt')\ntext = file.readline()",
            "cleaned": "lines = [line.strip() for line in lines]",
            "words": "words = ' '.join(lines).split()",
            "chart": """
            axis = plt.subplots()[1]
            axis.bar(range(3), [1, 0, 1])
            axis.set_title("Wind")
            """,
            "route": """
            def route(stops, speed=10):
                return {name: miles // speed for name, miles in stops}
            """,
        },
        "raises": {
            "ship": """
            class Ship:
                def __init__(self, name):
                    self.name = name
            """,
            "read": "file = open('logs.txt')\ntext = file.read()",
            "words": "words = lines.lower().split()",
            "route": """
            def route(stops):
                raise NotImplementedError()
            """,
        },
    },
)
