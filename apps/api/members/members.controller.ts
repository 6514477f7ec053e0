import { Body, Controller, Delete, Get, HttpCode, Param, Patch, Post, Query } from '@nestjs/common'
import type { FastifyReply } from 'fastify'
import Type from 'typebox'
import { Caller, RequireScope, type Principal } from '../access/principal.js'
import { Reply, withLocation } from '../http/headers.js'
import { ListPage, pageOf } from '../http/list-pages.js'
import { Mint, type Minting } from '../idempotency/minting.js'
import { Instance } from '../instance.js'
import { Describe, Tag } from '../openapi/describe.js'
import { ChangeMember, InviteMember, ResendInvitation } from './member-requests.dto.js'
import {
  Invitation,
  invitationIdOf,
  invitationJson,
  invitationWithUrlJson,
  InvitationWithUrl,
  Member,
  memberIdOfInvitation,
  memberJson,
  RemovedMember,
  removedMemberJson,
} from './member-schemas.js'
import { Members } from './members.service.js'

/** The members of the caller's account. */
@Controller('v1/members')
@Tag('Members')
@RequireScope('admin')
export class MembersController {
  constructor(private readonly members: Members) {}

  @Get()
  @Describe({
    summary: 'List members',
    answer: { description: 'A page of members.', schema: Type.Array(Member), headers: ['Link'] },
  })
  async listMembers(@Caller() principal: Principal, @Query() query: ListPage, @Reply() reply: FastifyReply) {
    const page = await pageOf('mem', query, reply, (range) => this.members.list(principal, 'active', range))
    return Promise.all(page.map(async (member) => memberJson(await this.members.open(member))))
  }

  @Get(':memberId')
  @Describe({ summary: 'Read a member', answer: { description: 'The member.', schema: Member } })
  async getMember(@Caller() principal: Principal, @Param('memberId') memberId: string) {
    return memberJson(await this.members.open(await this.members.get(principal, memberId)))
  }

  @Patch(':memberId')
  @Describe({
    summary: 'Change what a member may do',
    description:
      'It applies on every instance within a second, also to the sessions and personal keys of the member. Members cannot change their own role or permissions, nor give what they do not have themselves. Only an owner can change an owner, and the last one stays.',
    answer: { description: 'The member.', schema: Member },
  })
  async changeMember(
    @Caller() principal: Principal,
    @Param('memberId') memberId: string,
    @Body() body: ChangeMember,
  ) {
    return memberJson(await this.members.open(await this.members.change(principal, memberId, body)))
  }

  @Delete(':memberId')
  @Describe({
    summary: 'Remove a member',
    description:
      'Its sessions and personal keys stop working on every instance within a second. Service keys that it issued stay valid and are listed in the answer.',
    answer: { description: 'The member, with the keys that it issued.', schema: RemovedMember },
  })
  async removeMember(@Caller() principal: Principal, @Param('memberId') memberId: string) {
    const { member, ...keys } = await this.members.remove(principal, memberId)
    return removedMemberJson(member, keys)
  }
}

/** The invitations to become a member of the caller's account. */
@Controller('v1/invitations')
@Tag('Members')
@RequireScope('admin')
export class InvitationsController {
  constructor(
    private readonly members: Members,
    private readonly instance: Instance,
  ) {}

  @Post()
  @Describe({
    summary: 'Invite somebody',
    description:
      'Send the `url` of the answer to the person, unless it was `mailed`: who opens it first becomes the member, and is signed in to the console. The first owner of an account can be invited with any key that has the scope `admin`.',
    answer: {
      description: 'The invitation, with its link.',
      schema: InvitationWithUrl,
      headers: ['Location'],
    },
    problems: ['quota-exceeded'],
  })
  async inviteMember(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Body() body: InviteMember,
    @Reply() reply: FastifyReply,
  ) {
    const link = await this.members.invite(principal, body, minting)
    return withLocation(reply, '/v1/invitations', invitationWithUrlJson(link, this.instance.now()))
  }

  @Get()
  @Describe({
    summary: 'List invitations',
    description: 'Those that were not used or revoked.',
    answer: { description: 'A page of invitations.', schema: Type.Array(Invitation), headers: ['Link'] },
  })
  async listInvitations(
    @Caller() principal: Principal,
    @Query() query: ListPage,
    @Reply() reply: FastifyReply,
  ) {
    const page = await pageOf('inv', query, reply, async ({ after, ...range }) => {
      const from = { ...range, after: after && memberIdOfInvitation(after) }
      const members = await this.members.list(principal, 'invited', from)
      return members.map((member) => ({ id: invitationIdOf(member.id), member }))
    })
    const opened = await Promise.all(page.map(({ member }) => this.members.open(member)))
    return opened.map((member) => invitationJson(member, this.instance.now()))
  }

  @Get(':invitationId')
  @Describe({ summary: 'Read an invitation', answer: { description: 'The invitation.', schema: Invitation } })
  async getInvitation(@Caller() principal: Principal, @Param('invitationId') id: string) {
    const invitation = await this.members.open(await this.members.invitation(principal, id))
    return invitationJson(invitation, this.instance.now())
  }

  @Delete(':invitationId')
  @Describe({
    summary: 'Revoke an invitation',
    description: 'Its link is invalid then, and `email` is erased soon after.',
    answer: { description: 'The invitation.', schema: Invitation },
  })
  async revokeInvitation(@Caller() principal: Principal, @Param('invitationId') id: string) {
    return invitationJson(await this.members.revoke(principal, id), this.instance.now())
  }

  @Post(':invitationId/resend')
  @HttpCode(200)
  @Describe({
    summary: 'Make a new link for an invitation',
    description: 'Also for one that has expired. The former link is invalid from then on.',
    answer: { description: 'The invitation, with its new link.', schema: InvitationWithUrl },
  })
  async resendInvitation(
    @Caller() principal: Principal,
    @Mint() minting: Minting,
    @Param('invitationId') id: string,
    @Body() body: ResendInvitation,
  ) {
    const link = await this.members.renew(principal, id, body, minting)
    return invitationWithUrlJson(link, this.instance.now())
  }
}
