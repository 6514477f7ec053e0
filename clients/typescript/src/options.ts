import type { components, operations } from './openapi.js'

/** The JSON that the API takes and returns, by the schemas of its OpenAPI document. */
export type Schemas = components['schemas']

/** The JSON of one schema. */
export type Schema<Name extends keyof Schemas> = Schemas[Name]

/** What every method takes besides its own options. */
export interface CallOptions {
  /** Cancels the call. It then rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Milliseconds for the whole call, or each page of a list, retries included; 30,000 by default. */
  timeoutMs?: number | undefined
  /** The password of a protected inbox. Objects of inboxes send theirs by themselves. */
  password?: string | undefined
  /** Instead of a random key: repeats with the same key within 24 hours return the first answer. For POST only. */
  idempotencyKey?: string | undefined
}

type Camel<Name> = Name extends `${infer First}_${infer Rest}` ? `${First}${Capitalize<Camel<Rest>>}` : Name

/** Properties of a request in camelCase. Those that are optional may also be undefined. */
export type CamelCased<Data> = Data extends unknown
  ? {
      [Name in keyof Data as Camel<Name & string>]: object extends Pick<Data, Name>
        ? Data[Name] | undefined
        : Data[Name]
    }
  : never

/** The options of a method that sends a body. */
export type BodyOptions<Name extends keyof Schemas> = CamelCased<Schemas[Name]> & CallOptions

type Query<Name extends keyof operations> = NonNullable<operations[Name]['parameters']['query']>

/** The options of a method that sends a query. `cursor` and `timeout` are set by the library. */
export type QueryOptions<Name extends keyof operations> = CamelCased<
  Omit<Query<Name>, 'cursor' | 'timeout' | 'label'>
> &
  CallOptions & {
    /** Only what has all of these labels. */
    labels?: Readonly<Record<string, string>> | undefined
  }

/**
 * Separates the options of the call from those of the request, whose names become snake_case.
 * @internal
 */
export function splitOptions(
  options: CallOptions & { labels?: unknown },
): [CallOptions, Record<string, unknown>] {
  const { signal, timeoutMs, password, idempotencyKey, ...request } = options
  const named = Object.entries(request).map(([name, value]) => [
    name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`),
    value,
  ])
  return [
    { signal, timeoutMs, password, idempotencyKey },
    Object.fromEntries(named) as Record<string, unknown>,
  ]
}
