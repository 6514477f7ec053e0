import { createHash } from 'node:crypto'
import ts from 'typescript'
import { MAX_SPANNED_BYTES } from '#libs/mail/stored-mail.js'
import { MESSAGE_SCHEMAS } from '#libs/mail/json/message-json.js'

const TABLES = 'libs/ports/read-model/tables.ts'
const MAIL = 'libs/mail/stored-mail.ts'

/**
 * The form of the views as 16 hex digits: a digest of the declarations of tables (without comments and formatting), of the
 * types of all that they store, and of the stored mail.
 */
export function computeViewsForm(): string {
  const config: { config?: { compilerOptions?: unknown } } = ts.readConfigFile('tsconfig.json', (path) =>
    ts.sys.readFile(path),
  )
  const { options } = ts.convertCompilerOptionsFromJson(config.config?.compilerOptions, '.')
  const program = ts.createProgram([TABLES, MAIL], options)
  const checker = program.getTypeChecker()
  const parsed = (path: string) => {
    const source = program.getSourceFile(path)
    const module = source && checker.getSymbolAtLocation(source)
    if (source === undefined || module === undefined) throw new Error(`${path} can't be read`)
    return { source, exported: checker.getExportsOfModule(module) }
  }
  const tables = parsed(TABLES)
  const hash = createHash('sha256')
  hash.update(ts.createPrinter({ removeComments: true }).printFile(tables.source))
  for (const symbol of tables.exported) {
    // A table has a function from what it stores, its subject, to a row.
    const rowOf = checker.getTypeOfSymbol(symbol).getProperty('rowOf')
    const [signature] = rowOf === undefined ? [] : checker.getTypeOfSymbol(rowOf).getCallSignatures()
    const [subject] = signature?.getParameters() ?? []
    if (subject === undefined) continue
    hash.update(`${symbol.name} ${describeType(checker, checker.getTypeOfSymbol(subject))}`)
  }
  const mail = parsed(MAIL).exported.find(({ name }) => name === 'StoredMail')
  if (mail === undefined) throw new Error(`${MAIL} has no StoredMail`)
  hash.update(describeType(checker, checker.getDeclaredTypeOfSymbol(mail)) + String(MAX_SPANNED_BYTES))
  // The type of a schema may be printed without the properties in it.
  hash.update(
    JSON.stringify(MESSAGE_SCHEMAS, (name, value: unknown) => (name === 'description' ? '' : value)),
  )
  return hash.digest('hex').slice(0, 16)
}

/** A type with the names and types of all properties in it. */
export function describeType(
  checker: ts.TypeChecker,
  type: ts.Type,
  within: readonly ts.Type[] = [],
): string {
  const inner = [...within, type]
  if (within.includes(type)) return 'again'
  if (type.isUnion()) {
    return type.types
      .map((each) => describeType(checker, each, inner))
      .toSorted()
      .join('|')
  }
  const item = checker.isArrayType(type) ? type.getNumberIndexType() : undefined
  if (item !== undefined) return `${describeType(checker, item, inner)}[]`
  const isObject = (type.flags & ts.TypeFlags.Object) !== 0
  const declarations = type.getSymbol()?.declarations ?? []
  const isOwn = declarations.every((each) => !each.getSourceFile().fileName.includes('node_modules'))
  if (!isObject || !isOwn) return checker.typeToString(type)
  const properties = checker
    .getPropertiesOfType(type)
    .map((each) => `${each.name}:${describeType(checker, checker.getTypeOfSymbol(each), inner)}`)
  const values = type.getStringIndexType()
  if (values !== undefined) properties.push(`[]:${describeType(checker, values, inner)}`)
  return `{${properties.toSorted().join(';')}}`
}

/** The text of libs/ports/read-model/views-form.ts. */
export function renderViewsForm(): string {
  return `/**
 * The form of the views: a digest of the tables' declarations and of the types of what they store. Views of another form
 * are computed again from the log. Written by \`npm run generate\`.
 */
export const VIEWS_FORM = '${computeViewsForm()}'
`
}
