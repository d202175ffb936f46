"""Modelled on the notebooks of Georgia Tech's CSE 6040, such as cbm256/GT_CSE6040.

Typical is a module beside the notebook whose functions take the student's function and call it many
times with inputs drawn at random, compare with an answer of their own and print both where they
differ. Tests look at types, expect an input unchanged, run queries in SQLite, count paths in graphs
and compare sparse matrices; they set a name when they have passed, and use IPython's magics.
"""

from courses import Course, answer, locked, plain, test

COURSE = Course(
    files={
        "testing_market.py": """
        import random
        import string

        def draw_rows(most=20):
            names = random.choices(string.ascii_lowercase[:5], k=random.randint(1, most))
            return [(name, random.randint(1, 9), random.choice([0.5, 1.25, 2.0])) for name in names]

        def check_totals(function):
            rows = draw_rows()
            given = list(rows)
            expected = {}
            for name, count, price in rows:
                expected[name] = expected.get(name, 0) + count * price
            got = function(rows)
            assert rows == given, "the input was changed"
            assert isinstance(got, dict), f"expected a dict, got {type(got)}"
            assert set(got) == set(expected), f"for {rows}: expected {expected}, got {got}"
            for name, total in expected.items():
                assert abs(got[name] - total) < 1e-9, f"for {rows}: {name} is {got[name]}"

        def check_parse(function):
            day, month = random.randint(1, 28), random.randint(1, 12)
            year, cents = random.randint(1990, 2030), random.randint(1, 99_999)
            line = f"  {day}.{month}.{year}: paid {cents / 100:.2f} EUR "
            expected = (year, month, day, cents)
            got = function(line)
            assert got == expected, f"for {line!r}: expected {expected}, got {got}"
        """,
    },
    cells=[
        plain(
            """
            import random
            import re
            import sqlite3
            from collections import defaultdict

            import networkx as nx
            import numpy as np
            import scipy.sparse as sparse
            """
        ),
        locked(
            "checks",
            """
            from testing_market import check_parse, check_totals, draw_rows

            market = [("apple", 3, 0.5), ("pear", 1, 2.0), ("apple", 4, 1.25)]
            """,
        ),
        answer(
            "totals",
            '''
            def totals(rows):
                """Return a dictionary: what was paid in all for each name; rows stay unchanged."""
                ### BEGIN SOLUTION
                paid = defaultdict(float)
                for name, count, price in rows:
                    paid[name] += count * price
                return paid
                ### END SOLUTION
            ''',
        ),
        plain("totals(market)"),
        test(
            "totals-of-market",
            1,
            """
            assert totals(market) == {"apple": 6.5, "pear": 2.0}
            assert len(market) == 3
            """,
        ),
        test(
            "totals-drawn",
            2,
            """
            # Test cell: totals
            !echo begins
            for trial in range(40):
                check_totals(totals)
            !echo ends

            totals_passed = True
            print("\\n(Passed!)")
            """,
        ),
        answer(
            "parse",
            '''
            def parse(line):
                """Return year, month, day and cents of a line such as 3.11.2021: paid 14.50 EUR."""
                ### BEGIN SOLUTION
                day, month, year, euros, cents = re.search(
                    r"(\\d+)\\.(\\d+)\\.(\\d{4}): paid (\\d+)\\.(\\d\\d)", line
                ).groups()
                return int(year), int(month), int(day), 100 * int(euros) + int(cents)
                ### END SOLUTION
            ''',
        ),
        test(
            "parse-drawn",
            1,
            """
            from testing_market import check_parse
            for trial in range(40):
                check_parse(parse)
            assert isinstance(parse("1.2.2003: paid 4.05 EUR"), tuple)
            print("(Passed!)")
            """,
        ),
        answer(
            "query",
            """
            # query gets name and number of sales of all that was sold more than once, in the order
            # of the names, from a table sales with columns name, count and price
            ### BEGIN SOLUTION
            query = '''
                SELECT name, COUNT(*) AS number FROM sales
                GROUP BY name HAVING number > 1 ORDER BY name
            '''
            ### END SOLUTION
            """,
        ),
        test(
            "query-rows",
            1,
            """
            assert isinstance(query, str)
            db = sqlite3.connect(":memory:")
            db.execute("CREATE TABLE sales (name TEXT, count INTEGER, price REAL)")
            figs = [("fig", 1, 1), ("fig", 2, 1)]
            db.executemany("INSERT INTO sales VALUES (?, ?, ?)", market + figs)
            cursor = db.execute(query)
            assert [column[0] for column in cursor.description] == ["name", "number"]
            assert cursor.fetchall() == [("apple", 2), ("fig", 2)]
            db.close()
            """,
        ),
        answer(
            "cheapest",
            '''
            def cheapest(db):
                """Return, sorted, the names with the lowest price in the table sales."""
                ### BEGIN SOLUTION
                rows = db.execute(
                    "SELECT DISTINCT name FROM sales WHERE price = (SELECT MIN(price) FROM sales)"
                )
                return sorted(name for name, in rows)
                ### END SOLUTION
            ''',
        ),
        test(
            "cheapest-in-database",
            1,
            """
            db = sqlite3.connect(":memory:")
            db.execute("CREATE TABLE sales (name TEXT, count INTEGER, price REAL)")
            for trial in range(20):
                rows = draw_rows()
                db.execute("DELETE FROM sales")
                db.executemany("INSERT INTO sales VALUES (?, ?, ?)", rows)
                lowest = min(price for _, _, price in rows)
                assert cheapest(db) == sorted({name for name, _, price in rows if price == lowest})
            db.close()
            """,
        ),
        answer(
            "matrix",
            '''
            def to_matrix(pairs, n):
                """Return a sparse matrix (CSR) of n rows and columns with a 1 for each pair.

                A pair may be there twice.
                """
                ### BEGIN SOLUTION
                rows, columns = zip(*set(pairs))
                return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
                ### END SOLUTION
            ''',
        ),
        test(
            "matrix-drawn",
            2,
            """
            for trial in range(60):
                n = random.randint(2, 9)
                pairs = [(random.randrange(n), random.randrange(n)) for _ in range(n)]
                matrix = to_matrix(pairs, n)
                assert sparse.issparse(matrix) and matrix.format == "csr"
                assert matrix.shape == (n, n)
                dense = np.zeros((n, n))
                dense[tuple(zip(*pairs))] = 1
                assert (matrix.toarray() == dense).all(), pairs
                x = np.random.rand(n)
                np.testing.assert_allclose(matrix @ x, dense @ x)
                assert matrix.nnz == len(set(pairs))
            """,
        ),
        answer(
            "graph",
            '''
            def to_graph(pairs):
                """Return a directed graph: an edge for each pair, as weight its number."""
                ### BEGIN SOLUTION
                graph = nx.DiGraph()
                for a, b in pairs:
                    weight = graph[a][b]["weight"] if graph.has_edge(a, b) else 0
                    graph.add_edge(a, b, weight=weight + 1)
                return graph
                ### END SOLUTION
            ''',
        ),
        test(
            "graph-paths",
            2,
            """
            graph = to_graph(["ab", "bc", "ab", "ca", "cd"])
            assert isinstance(graph, nx.DiGraph), "edges have a direction"
            assert set(graph.nodes) == set("abcd")
            assert graph["a"]["b"]["weight"] == 2
            assert graph.get_edge_data("b", "a") is None
            assert nx.shortest_path(graph, "a", "d") == ["a", "b", "c", "d"]
            assert nx.number_strongly_connected_components(graph) == 2
            """,
        ),
        answer(
            "merge",
            '''
            def merge(one, other):
                """Return a dictionary of the sums of what two dictionaries have; change neither."""
                ### BEGIN SOLUTION
                return {key: one.get(key, 0) + other.get(key, 0) for key in one | other}
                ### END SOLUTION
            ''',
        ),
        test(
            "merge-drawn",
            1,
            """
            from copy import deepcopy

            for trial in range(60):
                one, other = ({random.choice("xyz"): random.random()} for _ in range(2))
                before = deepcopy((one, other))
                merged = merge(one, other)
                assert (one, other) == before, "the input was changed"
                for key in merged:
                    assert merged[key] == one.get(key, 0) + other.get(key, 0)
                assert merged.keys() == one.keys() | other.keys()
            """,
        ),
        test(
            "merge-in-time",
            1,
            """
            numbers = {number: 1 for number in range(20_000)}
            timing = %timeit -q -o -n1 -r1 merge(numbers, numbers)
            assert timing.best < 5, "too slow"
            assert totals_passed and sum(merge(numbers, numbers).values()) == 40_000
            """,
        ),
    ],
    changes={
        "another": {
            "totals": """
            def totals(rows):
                return {
                    name: sum(count * price for other, count, price in rows if other == name)
                    for name, _, _ in rows
                }
            """,
            "parse": """
            def parse(line):
                date, amount = line.strip().split(": paid ")
                day, month, year = map(int, date.split("."))
                return year, month, day, round(100 * float(amount.split()[0]))
            """,
            "query": """
            query = (
                "WITH counted AS (SELECT name, COUNT(name) AS number FROM sales GROUP BY name) "
                "SELECT * FROM counted WHERE number >= 2 ORDER BY name ASC"
            )
            """,
            "cheapest": """
            def cheapest(db):
                cursor = db.cursor()
                cursor.execute("SELECT name, price FROM sales ORDER BY price")
                rows = cursor.fetchall()
                return sorted({name for name, price in rows if price == rows[0][1]})
            """,
            "matrix": """
            def to_matrix(pairs, n):
                matrix = sparse.lil_matrix((n, n))
                for i, j in pairs:
                    matrix[i, j] = 1
                return matrix.tocsr()
            """,
            "graph": """
            from collections import Counter

            def to_graph(pairs):
                graph = nx.DiGraph()
                graph.add_weighted_edges_from((*pair, n) for pair, n in Counter(pairs).items())
                return graph
            """,
            "merge": """
            def merge(one, other):
                result = dict(one)
                for key, value in other.items():
                    result[key] = result.get(key, 0) + value
                return result
            """,
        },
        "wrong": {
            "totals": """
            def totals(rows):
                return {name: count * price for name, count, price in rows}
            """,
            "parse": """
            def parse(line):
                found = re.match(r"(\\d+).(\\d+).(\\d+): paid (\\d+)", line)
                return tuple(int(number) for number in found.groups())
            """,
            "query": 'query = "SELECT name, COUNT(*) FROM sales GROUP BY name"',
            "cheapest": """
            def cheapest(db):
                return db.execute("SELECT name, MIN(price) FROM sales").fetchone()[0]
            """,
            "matrix": """
            def to_matrix(pairs, n):
                rows, columns = zip(*pairs)
                return sparse.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(n, n))
            """,
            "graph": """
            def to_graph(pairs):
                graph = nx.Graph()
                graph.add_edges_from(pairs)
                return graph
            """,
            "merge": """
            def merge(one, other):
                one.update(other)
                return one
            """,
        },
        "careless": {
            "totals": """
            def totals(rows):
                paid = {}
                while rows:
                    name, count, price = rows.pop()
                    paid[name] = paid.get(name, 0) + count * price
                return paid
            """,
            "parse": """
            def parse(line):
                return [int(number) for number in re.findall("[0-9]+", line)]
            """,
            "query": 'query = "SELECT name, COUNT(*) FROM sale GROUP BY name"',
            "cheapest": """
            def cheapest(db):
                rows = db.execute("SELECT name FROM sales WHERE price = 0.5")
                return [name for name, in rows]
            """,
            "matrix": """
            def to_matrix(pairs, n):
                matrix = np.zeros((n, n))
                for i, j in pairs:
                    matrix[i, j] = 1
                return matrix
            """,
            "graph": """
            def to_graph(pairs):
                graph = nx.DiGraph()
                graph.add_edges_from(pairs, weight=1)
                return graph
            """,
            "merge": """
            def merge(one, other):
                return {**one, **other}
            """,
        },
        "raises": {
            "totals": """
            def totals(rows):
                paid = {}
                for name, count, price in rows:
                    paid[name] += count * price
                return paid
            """,
            "query": "query = select name from sales",
            "graph": """
            def to_graph(pairs):
                return nx.directed(pairs)

            to_graph(["ab"])
            """,
        },
    },
)
