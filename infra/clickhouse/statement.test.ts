import { readStatement } from './statement.js'

describe('a statement', () => {
  test.each([
    {
      sql: 'INSERT INTO t FORMAT JSONEachRow\n\n{}',
      before: 'INSERT INTO t ',
      format: 'JSONEachRow',
      data: '\n{}',
    },
    { sql: 'INSERT INTO t FORMAT CSV 1', before: 'INSERT INTO t ', format: 'CSV', data: '1' },
    {
      sql: '-- a\n/* b */ insert into t values (1); x',
      before: '-- a\n/* b */ insert into t ',
      format: 'Values',
      data: '(1); x',
    },
    {
      sql: 'INSERT INTO t (a, b) SETTINGS c = 1 FORMAT CSV',
      before: 'INSERT INTO t (a, b) ',
      format: 'CSV',
      data: '',
    },
    {
      sql: 'INSERT INTO `values` (`format`) VALUES',
      before: 'INSERT INTO `values` (`format`) ',
      format: 'Values',
      data: '',
    },
  ])('$sql has the data $data', ({ sql, before, format, data }) => {
    const { insert } = readStatement(sql)
    expect(insert).toMatchObject({ format, isByQuery: false })
    expect(sql.slice(0, insert?.sourceAt)).toBe(before)
    expect(sql.slice(insert?.dataAt)).toBe(data)
  })

  test.each(['SELECT 1', "SELECT 'INSERT'", '(SELECT 1) UNION ALL (SELECT 2)', 'INSERT INTO t SELECT 1'])(
    '%s has no data',
    (sql) => {
      expect(readStatement(sql)).toMatchObject({ insert: null, isFollowed: false, isEmpty: false })
    },
  )

  it('that reads its data with a query is recognized', () => {
    const sql = "INSERT INTO t SELECT * FROM input('a UInt8') FORMAT CSV\n1;2"
    expect(readStatement(sql).insert).toMatchObject({ isByQuery: true })
  })

  test.each([
    { sql: 'SELECT 1 FORMAT CSV', format: 'CSV' },
    { sql: 'SELECT 1 FORMAT CSV;', format: 'CSV' },
    { sql: 'SELECT 1 FORMAT CSV SETTINGS max_threads = 1 -- end', format: 'CSV' },
    { sql: "SELECT 'x FORMAT CSV'", format: null },
    { sql: 'SELECT 1 -- FORMAT CSV', format: null },
    { sql: "SELECT format('{}', 1)", format: null },
    { sql: 'SELECT (SELECT 1 AS format) x FORMAT TSV', format: 'TSV' },
  ])('$sql has the format $format', ({ sql, format }) => {
    expect(readStatement(sql).format).toBe(format)
  })

  test.each([
    { sql: 'SELECT 1; SELECT 2', isFollowed: true },
    { sql: 'SET max_threads = 1; SELECT 1', isFollowed: true },
    { sql: 'INSERT INTO t SELECT 1; DROP TABLE t', isFollowed: true },
    { sql: 'SELECT 1;; -- nothing more', isFollowed: false },
    { sql: "SELECT ';\\';', `;`, \";\", $x$;$x$ /* ; */", isFollowed: false },
  ])('$sql precedes another statement: $isFollowed', ({ sql, isFollowed }) => {
    expect(readStatement(sql).isFollowed).toBe(isFollowed)
  })

  test.each(['', ' \n', '-- nothing', '/* nothing */', ';'])('%j is empty', (sql) => {
    expect(readStatement(sql).isEmpty).toBe(sql !== ';')
  })

  it('can be long', () => {
    const sql = `SELECT '${"it''s \\' ".repeat(500_000)}' FORMAT CSV`
    expect(readStatement(sql)).toMatchObject({ format: 'CSV', isFollowed: false })
  })
})
