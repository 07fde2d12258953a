// Made by sdk/typescript/generate.mjs from lib/base/error_codes.def; do not edit.
// SPDX-License-Identifier: Apache-2.0
// One class for each error code of the daemon.
import { ApiError, type ErrorBody } from "./base_errors.js";

/** Not found. */
export class NotFoundError extends ApiError {
  static override readonly code: string = "Sandbox.NotFound";
}

/** A field has an invalid value. */
export class InvalidParameterError extends ApiError {
  static override readonly code: string = "Sandbox.InvalidParameter";
}

/** The body is not valid JSON. */
export class InvalidJsonError extends ApiError {
  static override readonly code: string = "Sandbox.InvalidJson";
}

/** The request has an unknown field. */
export class UnknownFieldError extends ApiError {
  static override readonly code: string = "Sandbox.UnknownField";
}

/** Unsupported media type. */
export class UnsupportedMediaTypeError extends ApiError {
  static override readonly code: string = "Sandbox.UnsupportedMediaType";
}

/** The request is too large. */
export class PayloadTooLargeError extends ApiError {
  static override readonly code: string = "Sandbox.PayloadTooLarge";
}

/** The path does not support this method. */
export class MethodNotAllowedError extends ApiError {
  static override readonly code: string = "Sandbox.MethodNotAllowed";
}

/** The current state does not allow this. */
export class StateConflictError extends ApiError {
  static override readonly code: string = "Sandbox.StateConflict";
}

/** No valid API key. */
export class UnauthorizedError extends ApiError {
  static override readonly code: string = "Internal.Unauthorized";
}

/** The Host or Origin is not allowed. */
export class ForbiddenError extends ApiError {
  static override readonly code: string = "Sandbox.Forbidden";
}

/** Denied by policy. */
export class PolicyDeniedError extends ApiError {
  static override readonly code: string = "Sandbox.PolicyDenied";
}

/** Too many requests at a time. */
export class TooManyRequestsError extends ApiError {
  static override readonly code: string = "Sandbox.TooManyRequests";
}

/** The request timed out. */
export class RequestTimeoutError extends ApiError {
  static override readonly code: string = "Sandbox.RequestTimeout";
}

/** Session not found. */
export class SessionNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.SessionNotFound";
}

/** Execution not found. */
export class ExecutionNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.ExecutionNotFound";
}

/** The execution did not end within the wait time. */
export class ExecTimeoutError extends ApiError {
  static override readonly code: string = "Sandbox.ExecTimeout";
}

/** Quota exceeded. */
export class QuotaExceededError extends ApiError {
  static override readonly code: string = "Sandbox.QuotaExceeded";
}

/** The key lacks the required scope. */
export class ScopeMissingError extends ApiError {
  static override readonly code: string = "Sandbox.ScopeMissing";
}

/** Key not found. */
export class KeyNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.KeyNotFound";
}

/** Tenant not found. */
export class TenantNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.TenantNotFound";
}

/** File not found. */
export class FileNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.FileNotFound";
}

/** The range is outside the file. */
export class RangeNotSatisfiableError extends ApiError {
  static override readonly code: string = "Sandbox.RangeNotSatisfiable";
}

/** The disk of the box is full. */
export class InsufficientStorageError extends ApiError {
  static override readonly code: string = "Sandbox.InsufficientStorage";
}

/** Template not found. */
export class TemplateNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.TemplateNotFound";
}

/** The template is in use. */
export class TemplateInUseError extends ApiError {
  static override readonly code: string = "Sandbox.TemplateInUse";
}

/** Import not found. */
export class ImportNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.ImportNotFound";
}

/** Secret not found. */
export class SecretNotFoundError extends NotFoundError {
  static override readonly code: string = "Sandbox.SecretNotFound";
}

/** The language is not installed. */
export class LanguageNotInstalledError extends ApiError {
  static override readonly code: string = "Sandbox.LanguageNotInstalled";
}

/** The service is unavailable. */
export class UnavailableError extends ApiError {
  static override readonly code: string = "Sandbox.Unavailable";
}

/** Could not create the box. */
export class ExecExceptionError extends ApiError {
  static override readonly code: string = "Sandbox.ExecException";
}

/** The box ended before it answered. */
export class AgentLostError extends ApiError {
  static override readonly code: string = "Sandbox.AgentLost";
}

/** The packages could not be installed. */
export class InstallFailedError extends ApiError {
  static override readonly code: string = "Sandbox.InstallFailed";
}

/** The peer's identity could not be verified. */
export class UntrustedError extends ApiError {
  static override readonly code: string = "Sandbox.Untrusted";
}

/** Two parts of Millibox disagree. */
export class ProtocolError extends ApiError {
  static override readonly code: string = "Sandbox.ProtocolError";
}

/** The server is not configured for this. */
export class ConfigError extends ApiError {
  static override readonly code: string = "Sandbox.ConfigError";
}

/** Internal error. */
export class InternalError extends ApiError {
  static override readonly code: string = "Sandbox.InternalError";
}

/** Could not persist the change. */
export class StorageFailedError extends ApiError {
  static override readonly code: string = "Sandbox.StorageFailed";
}

/** The class of each code. */
export const CLASSES: { readonly [code: string]: typeof ApiError } = {
  "Sandbox.NotFound": NotFoundError,
  "Sandbox.InvalidParameter": InvalidParameterError,
  "Sandbox.InvalidJson": InvalidJsonError,
  "Sandbox.UnknownField": UnknownFieldError,
  "Sandbox.UnsupportedMediaType": UnsupportedMediaTypeError,
  "Sandbox.PayloadTooLarge": PayloadTooLargeError,
  "Sandbox.MethodNotAllowed": MethodNotAllowedError,
  "Sandbox.StateConflict": StateConflictError,
  "Internal.Unauthorized": UnauthorizedError,
  "Sandbox.Forbidden": ForbiddenError,
  "Sandbox.PolicyDenied": PolicyDeniedError,
  "Sandbox.TooManyRequests": TooManyRequestsError,
  "Sandbox.RequestTimeout": RequestTimeoutError,
  "Sandbox.SessionNotFound": SessionNotFoundError,
  "Sandbox.ExecutionNotFound": ExecutionNotFoundError,
  "Sandbox.ExecTimeout": ExecTimeoutError,
  "Sandbox.QuotaExceeded": QuotaExceededError,
  "Sandbox.ScopeMissing": ScopeMissingError,
  "Sandbox.KeyNotFound": KeyNotFoundError,
  "Sandbox.TenantNotFound": TenantNotFoundError,
  "Sandbox.FileNotFound": FileNotFoundError,
  "Sandbox.RangeNotSatisfiable": RangeNotSatisfiableError,
  "Sandbox.InsufficientStorage": InsufficientStorageError,
  "Sandbox.TemplateNotFound": TemplateNotFoundError,
  "Sandbox.TemplateInUse": TemplateInUseError,
  "Sandbox.ImportNotFound": ImportNotFoundError,
  "Sandbox.SecretNotFound": SecretNotFoundError,
  "Sandbox.LanguageNotInstalled": LanguageNotInstalledError,
  "Sandbox.Unavailable": UnavailableError,
  "Sandbox.ExecException": ExecExceptionError,
  "Sandbox.AgentLost": AgentLostError,
  "Sandbox.InstallFailed": InstallFailedError,
  "Sandbox.Untrusted": UntrustedError,
  "Sandbox.ProtocolError": ProtocolError,
  "Sandbox.ConfigError": ConfigError,
  "Sandbox.InternalError": InternalError,
  "Sandbox.StorageFailed": StorageFailedError,
};

/** The HTTP status of each code. */
export const STATUS: { readonly [code: string]: number } = {
  "Sandbox.NotFound": 404,
  "Sandbox.InvalidParameter": 400,
  "Sandbox.InvalidJson": 400,
  "Sandbox.UnknownField": 400,
  "Sandbox.UnsupportedMediaType": 415,
  "Sandbox.PayloadTooLarge": 413,
  "Sandbox.MethodNotAllowed": 405,
  "Sandbox.StateConflict": 409,
  "Internal.Unauthorized": 401,
  "Sandbox.Forbidden": 403,
  "Sandbox.PolicyDenied": 403,
  "Sandbox.TooManyRequests": 429,
  "Sandbox.RequestTimeout": 408,
  "Sandbox.SessionNotFound": 404,
  "Sandbox.ExecutionNotFound": 404,
  "Sandbox.ExecTimeout": 408,
  "Sandbox.QuotaExceeded": 429,
  "Sandbox.ScopeMissing": 403,
  "Sandbox.KeyNotFound": 404,
  "Sandbox.TenantNotFound": 404,
  "Sandbox.FileNotFound": 404,
  "Sandbox.RangeNotSatisfiable": 416,
  "Sandbox.InsufficientStorage": 507,
  "Sandbox.TemplateNotFound": 404,
  "Sandbox.TemplateInUse": 400,
  "Sandbox.ImportNotFound": 404,
  "Sandbox.SecretNotFound": 404,
  "Sandbox.LanguageNotInstalled": 400,
  "Sandbox.Unavailable": 503,
  "Sandbox.ExecException": 503,
  "Sandbox.AgentLost": 503,
  "Sandbox.InstallFailed": 422,
  "Sandbox.Untrusted": 503,
  "Sandbox.ProtocolError": 500,
  "Sandbox.ConfigError": 500,
  "Sandbox.InternalError": 500,
  "Sandbox.StorageFailed": 507,
};

/** The error for an error body. A code that this version does not know is an `ApiError`. */
export function fromAnswer(status: number, body: ErrorBody, retryAfter: number | null = null): ApiError {
  return new (CLASSES[String(body.error_code)] ?? ApiError)(status, body, retryAfter);
}

/** An error body; one that is none, such as a proxy's page, becomes the detail of an error without a code. */
export function readBody(body: Uint8Array): ErrorBody {
  const text = new TextDecoder().decode(body);
  try {
    const found: unknown = JSON.parse(text);
    if (found !== null && typeof found === "object" && !Array.isArray(found)) return found;
  } catch {
    // Not JSON.
  }
  return { error_detail: text.slice(0, 500).trim() };
}
