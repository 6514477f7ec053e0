import { SetMetadata, type Type } from '@nestjs/common'
import type { TSchema } from 'typebox'
import type { ProblemCode } from '../http/problems.js'
import type { RequestHeader, ResponseHeader } from '../http/headers.js'

/** What an operation is, beyond what its route, its classes and its scopes say: each handler must have it. */
export interface Description {
  /** Where the path has two families it speaks of an `Inbox`, or `Inboxes`: the other's id says `Email`. */
  id: string
  tag: Tag
  summary: string
  /** Markdown of paragraphs and `code`. */
  description?: string
  answer: Answer
  /** What it may fail with, beyond what every operation of its kind may. */
  problems?: readonly ProblemCode[]
  /** Headers that it reads, beyond what every operation of its kind does. */
  takes?: readonly RequestHeader[]
}

/** What it answers when all went well. */
export interface Answer {
  description: string
  /** Of a JSON body; else of the text, in the media type that the handler produces. */
  schema: TSchema
  /** What else it may say in its headers. */
  headers?: readonly ResponseHeader[]
}

export const TAGS = {
  Inboxes: 'Addresses for a while: made, listed, read, deleted.',
  Messages: 'What has arrived in an inbox.',
  Webhooks: 'Where events are sent to as they happen.',
  Accounts: 'Whom keys and inboxes belong to.',
  Keys: 'What requests are made with.',
  Usage: 'What keys were used for.',
  Operations: 'For those who run Mayfly, and for this document. No key is needed.',
} as const

export type Tag = keyof typeof TAGS

const DESCRIPTION = Symbol('description')

/** Says in the OpenAPI document what a handler does and answers. */
export function Describe(description: Description): MethodDecorator {
  return SetMetadata(DESCRIPTION, description)
}

export function descriptionOf(handler: object): Description | undefined {
  return Reflect.getMetadata(DESCRIPTION, handler) as Description | undefined
}

const ABOUT = Symbol('about')

export interface About {
  description: string
  /** What its rules can't say in JSON Schema by themselves. */
  schema: object
}

/** Says what a property of a body, or a parameter of a query, is for; `schema` adds to what its rules say. */
export function Says(description: string, schema: object = {}): PropertyDecorator {
  return (target, property) => {
    Reflect.defineMetadata(ABOUT, { description, schema } satisfies About, target, property)
  }
}

const BODY = Symbol('body')

/** A body as a whole; the document names its schema after the class. */
export interface BodyDescription {
  description: string
  /** A request that does something useful. */
  example: object
  minProperties?: number
  /** Variants that exclude each other, by the names of their schemas: the properties that each one requires. */
  variants?: Readonly<Record<string, { description: string; required: readonly string[] }>>
}

/** Describes the body that a class checks, beyond its properties. */
export function DescribeBody(description: BodyDescription): ClassDecorator {
  return (target) => Reflect.defineMetadata(BODY, description, target)
}

/** Throws if the class of a body has no description. */
export function bodyDescriptionOf(metatype: Type): BodyDescription {
  const description = Reflect.getMetadata(BODY, metatype) as BodyDescription | undefined
  if (description === undefined) throw new Error(`${metatype.name} has no description`)
  return description
}

export function aboutOf(prototype: object, property: string): About | undefined {
  return Reflect.getMetadata(ABOUT, prototype, property) as About | undefined
}
