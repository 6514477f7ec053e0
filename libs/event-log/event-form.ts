import { Encoder } from 'cbor-x'
import Type from 'typebox'
import { Compile } from 'typebox/compile'
import { asBuffer } from '#libs/bytes/as-buffer.js'
import { idPattern, type Id } from '#libs/typeid/typeid.js'
import { TYPE_PREFIX, type EventForm } from './cloud-event.js'

/** Plain CBOR (RFC 8949), without the extensions of its encoder: any reader takes it. */
const cbor = new Encoder({ useRecords: false, tagUint8Array: false, variableMapSize: true })

export const Text = Type.String()
export const Time = Type.String({ format: 'date-time' })
/** As far as every reader of JSON has integers exactly (RFC 8259, section 6). */
export const Count = Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })
export const Sha256 = Type.String({ pattern: '^[0-9a-f]{64}$' })
/** Sealed bytes in JSON: base64 (RFC 4648, section 4). */
export const SealedText = Type.String({ contentEncoding: 'base64' })
/** Sealed bytes in CBOR: a byte string. */
export const SealedBytes = Type.Refine(
  Type.Unsafe<Uint8Array>({ description: 'a byte string of CBOR (RFC 8949, major type 2)' }),
  (value) => value instanceof Uint8Array,
)

export function IdText<Prefix extends string>(prefix: Prefix): Type.TUnsafe<Id<Prefix>> {
  return Type.Unsafe<Id<Prefix>>(Type.String({ pattern: idPattern(prefix) }))
}

interface FormOptions<Event, Schema extends Type.TProperties> {
  /** Without the prefix that every type has. */
  name: string
  /** Of the data; 1 where nothing is said. */
  version?: number
  contentType: EventForm<Event>['contentType']
  properties: Schema
  toData: (event: Event) => Type.Static<Type.TObject<Schema>>
  fromData: (data: Type.Static<Type.TObject<Schema>>) => Event
}

/** A form whose data is checked against a JSON Schema, as it stands in docs/events.md. */
export function eventForm<Event, const Schema extends Type.TProperties>(
  options: FormOptions<Event, Schema>,
): EventForm<Event> & { schema: Type.TObject<Schema> } {
  const { version = 1, contentType, toData, fromData } = options
  const schema = Type.Object(options.properties)
  const validator = Compile(schema)
  return {
    name: TYPE_PREFIX + options.name,
    version,
    contentType,
    schema,
    encode(event) {
      const data = toData(event)
      return contentType === 'application/cbor' ? cbor.encode(data) : Buffer.from(JSON.stringify(data))
    },
    decode(value) {
      const data: unknown =
        contentType === 'application/cbor' ? cbor.decode(value) : JSON.parse(asBuffer(value).toString())
      if (!validator.Check(data)) {
        const [error] = validator.Errors(data)
        throw new TypeError(
          `data does not fit the schema: ${error?.instancePath ?? ''} ${error?.message ?? ''}`,
        )
      }
      return fromData(data)
    },
  }
}
