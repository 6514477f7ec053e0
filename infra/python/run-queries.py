"""Runs queries on exported usage in the working folder, for the suite of docs/analytics.md.

Standard input is a JSON list of {question, sql} or {question, python}. A query in SQL may use the parameter $label, one in
Python leaves a data frame in `answer`. Standard output is a JSON object: of each question's answer the number of rows, the
names of the columns, and those that have a value in any row; or the error.
"""

import json
import sys

import duckdb


def answer_of(query):
    if "python" in query:
        names = {}
        exec(query["python"], names)
        return names["answer"]
    db = duckdb.connect()
    db.execute("SET TimeZone = 'UTC'")
    parameters = {"label": "run:0"} if "$label" in query["sql"] else {}
    return db.execute(query["sql"], parameters).df()


def described(query):
    try:
        answer = answer_of(query)
    except Exception as error:
        return {"error": str(error)}
    columns = [str(name) for name in answer.columns]
    filled = [str(name) for name in answer.columns if answer[name].notna().any()]
    return {"rows": len(answer), "columns": columns, "filled": filled}


print(json.dumps({query["question"]: described(query) for query in json.load(sys.stdin)}))
