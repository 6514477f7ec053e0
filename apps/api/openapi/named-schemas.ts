import type { SchemaJson } from './openapi-json.js'

/** Gathers the schemas that have a name, and puts a reference in their place. */
export class NamedSchemas {
  private readonly found = new Map<string, SchemaJson>()

  /** A schema as it stands in the document. Throws if a name has two schemas. */
  name(schema: object): SchemaJson {
    return this.walk(schema) as SchemaJson
  }

  /** Every named schema so far, by its name. */
  all(): Record<string, SchemaJson> {
    return Object.fromEntries([...this.found].toSorted(([one], [other]) => one.localeCompare(other)))
  }

  private walk(value: unknown): unknown {
    if (Array.isArray(value)) return value.map((item) => this.walk(item))
    if (typeof value !== 'object' || value === null) return value
    const { $id: name, ...members } = value as Record<string, unknown>
    // What stands under a key with a tilde is for programs of this one.
    const entries = Object.entries(members).filter(([key]) => !key.startsWith('~'))
    const schema = Object.fromEntries(entries.map(([key, member]) => [key, this.walk(member)]))
    if (typeof name !== 'string') return schema
    const known = this.found.get(name)
    if (known !== undefined && JSON.stringify(known) !== JSON.stringify(schema)) {
      throw new Error(`two schemas have the name ${name}`)
    }
    this.found.set(name, schema)
    return { $ref: `#/components/schemas/${name}` }
  }
}
