import { RequestMethod, type Type } from '@nestjs/common'
import { Reflector } from '@nestjs/core'
import type { Scope } from '#libs/domain/account/scope.js'
import { scopesOf } from '../access/scope.guard.js'
import { producedBy } from '../http/media.js'
import { routeTemplate } from '../http/route-template.js'
import { descriptionOf, type Description } from './describe.js'
import type { Method } from './openapi-json.js'

/** One way to call a handler, as Nest registers it. */
export interface Route {
  method: Method
  /** As `routeTemplate` spells it. */
  path: string
  status: number
  description: Description
  /** Null if no key is needed. */
  scopes: readonly Scope[] | null
  /** A media type; null if that is known only with the answer. */
  produces: string | null
  /** The classes that check the query and the body. */
  query: Type | null
  body: Type | null
}

/** Nest's names for what its decorators store. */
const METADATA = {
  path: 'path',
  method: 'method',
  status: '__httpCode__',
  handlerArguments: '__routeArguments__',
  types: 'design:paramtypes',
} as const
/** Kinds of arguments: the first part of their keys. */
const BODY = '3'
const QUERY = '4'

const METHODS: Partial<Record<RequestMethod, Method>> = {
  [RequestMethod.GET]: 'get',
  [RequestMethod.POST]: 'post',
  [RequestMethod.PUT]: 'put',
  [RequestMethod.PATCH]: 'patch',
  [RequestMethod.DELETE]: 'delete',
}

/** Every route of some controllers. Throws if a handler has no description. */
export function routesOf(controllers: readonly Type[]): Route[] {
  return controllers.flatMap((controller) => {
    const prototype = controller.prototype as Record<string, unknown>
    const names = Object.getOwnPropertyNames(prototype).filter((name) => name !== 'constructor')
    return names.flatMap((name) => {
      const handler = prototype[name]
      if (!isHandler(handler)) return []
      return handlerRoutes(controller, name, handler)
    })
  })
}

function handlerRoutes(controller: Type, name: string, handler: Handler): Route[] {
  const description = descriptionOf(handler)
  if (description === undefined) throw new Error(`${controller.name}.${name} has no description`)
  const method = METHODS[read(METADATA.method, handler) as RequestMethod]
  if (method === undefined) throw new Error(`${controller.name}.${name} has a method that is not described`)
  const reflector = new Reflector()
  const types = argumentTypes(controller, name)
  const route = {
    method,
    description,
    status: (read(METADATA.status, handler) as number | undefined) ?? (method === 'post' ? 201 : 200),
    scopes: scopesOf(reflector, handler),
    produces: producedBy(reflector, handler),
    query: types.get(QUERY) ?? null,
    body: types.get(BODY) ?? null,
  }
  const tail = texts(read(METADATA.path, handler))
  return texts(read(METADATA.path, controller)).flatMap((base) =>
    tail.map((path) => ({ ...route, path: routeTemplate(`/${segmentsOf(`${base}/${path}`).join('/')}`) })),
  )
}

/** The classes of a handler's body and query. */
function argumentTypes(controller: Type, name: string): Map<string, Type> {
  const all = Reflect.getMetadata(METADATA.types, controller.prototype as object, name) as Type[]
  const stored = Reflect.getMetadata(METADATA.handlerArguments, controller, name) as
    Record<string, { index: number }> | undefined
  return new Map(
    Object.entries(stored ?? {}).flatMap(([key, { index }]) => {
      const type = all[index]
      return type === undefined ? [] : [[key.split(':')[0] ?? '', type]]
    }),
  )
}

function segmentsOf(path: string): string[] {
  return path.split('/').filter(Boolean)
}

type Handler = Parameters<typeof scopesOf>[1]

function isHandler(value: unknown): value is Handler {
  return typeof value === 'function' && Reflect.hasMetadata(METADATA.method, value)
}

function read(key: string, target: object): unknown {
  return Reflect.getMetadata(key, target)
}

function texts(value: unknown): string[] {
  return [value].flat().filter((each) => typeof each === 'string')
}
