// SPDX-License-Identifier: Apache-2.0
// Local files, and directories as tar archives, both ways. What comes out of a sandbox is hostile: it never gets
// outside of its directory.
import { randomBytes } from "node:crypto";
import { constants, createReadStream } from "node:fs";
import * as fs from "node:fs/promises";
import { basename, dirname, join, resolve } from "node:path";
import { MilliboxError, UnsafeArchive } from "../base_errors.js";
import type { LocalFiles } from "../platform.js";
import { BLOCK, type Entry, makeHeader, padding, readArchive } from "./tar.js";

const CHUNK = 256 * 1024;
const FOLDER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;
const NEW_FILE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;

export const nodeFiles: LocalFiles = {
  join,
  pack,
  unpack,
  baseName: (path) => basename(resolve(path)),

  async isDirectory(path) {
    try {
      return (await fs.stat(path)).isDirectory();
    } catch (error) {
      if (isMissing(error)) return false;
      throw error;
    }
  },

  async read(path) {
    const source = await fs.open(path, "r");
    const mode = (await source.stat()).mode & 0o100 ? 0o755 : 0o644;
    return { content: source.createReadStream({ highWaterMark: CHUNK }), mode };
  },

  async write(path, pieces) {
    const partial = join(dirname(resolve(path)), `.millibox-${randomBytes(8).toString("hex")}`);
    try {
      await writeNew(partial, pieces, 0o666);
      await fs.rename(partial, path);
    } catch (error) {
      await fs.rm(partial, { force: true });
      throw error;
    }
  },
};

function isMissing(error: unknown): boolean {
  return (error as NodeJS.ErrnoException).code === "ENOENT";
}

async function writeNew(path: string, pieces: AsyncIterable<Uint8Array>, mode: number): Promise<void> {
  const target = await fs.open(path, NEW_FILE, mode);
  try {
    for await (const piece of pieces) await target.writeFile(piece);
  } finally {
    await target.close();
  }
}

/** The content of a directory as an archive, piece by piece. Links stay links; sockets and devices are left out. */
async function* pack(directory: string): AsyncGenerator<Uint8Array, void, void> {
  yield* packBelow(directory, "");
  yield Buffer.alloc(2 * BLOCK);
}

async function* packBelow(directory: string, prefix: string): AsyncGenerator<Uint8Array, void, void> {
  for (const name of (await fs.readdir(directory)).sort()) {
    const path = join(directory, name);
    const found = await fs.lstat(path);
    const entry = { name: prefix + name, link: "", size: 0, mode: found.mode };
    if (found.isSymbolicLink()) yield makeHeader({ ...entry, kind: "symlink", link: await fs.readlink(path) });
    else if (found.isDirectory()) {
      yield makeHeader({ ...entry, kind: "directory" });
      yield* packBelow(path, `${prefix}${name}/`);
    } else if (found.isFile()) {
      yield makeHeader({ ...entry, kind: "file", size: found.size });
      yield* content(path, found.size);
    }
  }
}

/** Exactly @size bytes, and the padding after them. A file that shrinks meanwhile is an error. */
async function* content(path: string, size: number): AsyncGenerator<Uint8Array, void, void> {
  let left = size;
  if (size > 0) {
    for await (const piece of createReadStream(path, { end: size - 1, highWaterMark: CHUNK })) {
      left -= piece.length;
      yield piece;
    }
  }
  if (left > 0) throw new MilliboxError(`${path} became shorter while it was read`);
  if (size % BLOCK) yield padding(size);
}

/** Unpack an archive of a sandbox below @directory. No link is followed, entries that are neither files, directories
 * nor links inside are refused, set-id bits are dropped. */
async function unpack(directory: string, archive: AsyncIterable<Uint8Array>): Promise<void> {
  const links: { parts: string[]; target: string }[] = [];
  await fs.mkdir(directory, { recursive: true });
  const root = await fs.open(directory, constants.O_RDONLY | constants.O_DIRECTORY);
  try {
    await readArchive(archive, async (entry, pieces) => {
      const parts = partsOf(entry.name);
      if (entry.kind === "symlink") links.push({ parts, target: entry.link });
      else if (parts.length > 0) await unpackEntry({ root, directory }, entry, parts, pieces);
    });
    // Last, so that nothing is written through one.
    for (const { parts, target } of links) await makeLink({ root, directory }, parts, target);
  } finally {
    await root.close();
  }
}

function partsOf(name: string): string[] {
  const parts = name.split("/").filter((part) => part !== "" && part !== ".");
  if (name.startsWith("/") || parts.includes("..") || name.includes("\0")) {
    throw new UnsafeArchive(`the archive has an entry outside of its directory: ${JSON.stringify(name)}`);
  }
  return parts;
}

/** The directory that is unpacked into. */
interface Root {
  readonly root: fs.FileHandle;
  readonly directory: string;
}

async function unpackEntry(at: Root, entry: Entry, parts: string[], pieces: AsyncIterable<Uint8Array>): Promise<void> {
  if (entry.kind === "directory") return inFolder(at, parts, async () => undefined);
  if (entry.kind !== "file") {
    const name = JSON.stringify(entry.name);
    throw new UnsafeArchive(`the archive has an entry that is neither file, directory nor link: ${name}`);
  }
  await inFolder(at, parts.slice(0, -1), async (folder) => {
    const path = `${folder}/${parts[parts.length - 1]}`;
    await removeOld(path);
    await writeNew(path, pieces, 0o600);
    await fs.chmod(path, entry.mode & 0o100 ? 0o755 : 0o644);
  });
}

/** Call @work with a path of the directory below the root, made where it is missing; no component may be a link.
 * Linux names a directory by its descriptor, so that no component can be exchanged meanwhile; elsewhere components
 * are opened one by one, and the path is used. */
async function inFolder(at: Root, parts: string[], work: (folder: string) => Promise<void>): Promise<void> {
  const open: fs.FileHandle[] = [];
  let here = pathOf(at.root, at.directory);
  try {
    for (const part of parts) {
      const path = `${here}/${part}`;
      await fs.mkdir(path, 0o755).catch((error) => {
        if (error.code !== "EEXIST") throw error;
      });
      open.push(await openFolder(path, parts));
      here = pathOf(open[open.length - 1]!, path);
    }
    await work(here);
  } finally {
    for (const handle of open) await handle.close();
  }
}

async function openFolder(path: string, parts: string[]): Promise<fs.FileHandle> {
  try {
    return await fs.open(path, FOLDER);
  } catch (cause) {
    const code = (cause as NodeJS.ErrnoException).code;
    throw new UnsafeArchive(`'${parts.join("/")}' is not a directory: ${code}`, { cause });
  }
}

function pathOf(folder: fs.FileHandle, path: string): string {
  return process.platform === "linux" ? `/proc/self/fd/${folder.fd}` : path;
}

/** Remove a file or link of this name; a directory is kept, and creating the file fails. */
async function removeOld(path: string): Promise<void> {
  try {
    if (!(await fs.lstat(path)).isDirectory()) await fs.unlink(path);
  } catch (error) {
    if (!isMissing(error)) throw error;
  }
}

/** Behind a name ".." could be the parent of another link's target: it is accepted only in front. */
function isInside(parts: string[], target: string): boolean {
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const first = steps.findIndex((step) => step !== "..");
  const up = first < 0 ? steps.length : first;
  return !target.startsWith("/") && up < parts.length && !steps.slice(up).includes("..");
}

async function makeLink(at: Root, parts: string[], target: string): Promise<void> {
  if (!isInside(parts, target)) {
    const where = JSON.stringify(target);
    throw new UnsafeArchive(`the link '${parts.join("/")}' leads outside of its directory: ${where}`);
  }
  await inFolder(at, parts.slice(0, -1), async (folder) => {
    const path = `${folder}/${parts[parts.length - 1]}`;
    await removeOld(path);
    await fs.symlink(target, path);
  });
}
