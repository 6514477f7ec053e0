//! Verifies an exported log of C2SP tlog-tiles with the crates of Cloudflare's Azul.
//! Its arguments are the folder of the export and the verifier key. It prints the number of leaves.

use signed_note::{Note, StandardVerifier, Verifier, VerifierList};
use std::{env, error::Error, fs, path::PathBuf};
use tlog_tiles::{
    check_record, prove_record, record_hash, Checkpoint, Tile, TileHashReader, TileReader,
};

/// A tile has 2^8 hashes.
const TILE_HEIGHT: u8 = 8;

struct Export(PathBuf);

impl Export {
    /// The paths of the crate are those of Go's checksum database, such as tile/8/0/000 and tile/8/data/000.
    fn read(&self, tile: &Tile) -> Result<Vec<u8>, String> {
        let path = tile
            .path()
            .replacen("/8/", "/", 1)
            .replace("data", "entries");
        fs::read(self.0.join(&path)).map_err(|error| format!("{path}: {error}"))
    }
}

impl TileReader for Export {
    fn height(&self) -> u8 {
        TILE_HEIGHT
    }

    fn read_tiles(&self, tiles: &[Tile]) -> Result<Vec<Vec<u8>>, tlog_tiles::Error> {
        let read = |tile| self.read(tile).map_err(tlog_tiles::Error::InvalidInput);
        tiles.iter().map(read).collect()
    }

    fn save_tiles(&self, _tiles: &[Tile], _data: &[Vec<u8>]) {}
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().collect();
    let [_, folder, key] = &arguments[..] else {
        return Err("usage: verify-audit-log <folder> <verifier key>".into());
    };
    let export = Export(folder.into());
    let verifier = StandardVerifier::new(key)?;
    let origin = verifier.name().to_owned();

    let note = Note::from_bytes(&fs::read(export.0.join("checkpoint"))?)?;
    note.verify(&VerifierList::new(vec![Box::new(verifier)]))?;
    let checkpoint = Checkpoint::from_bytes(note.text()).map_err(|error| error.to_string())?;
    if checkpoint.origin() != origin {
        return Err("the checkpoint is that of another log".into());
    }

    let (size, root) = (checkpoint.size(), *checkpoint.hash());
    let hashes = TileHashReader::new(size, root, &export);
    let mut index = 0;
    for mut tile in Tile::new_tiles(TILE_HEIGHT, 0, size) {
        if tile.level() > 0 {
            continue;
        }
        tile.set_is_data();
        let bundle = export.read(&tile)?;
        let mut rest = &bundle[..];
        for _ in 0..tile.width() {
            let [high, low, tail @ ..] = rest else {
                return Err(format!("leaf {index}: missing").into());
            };
            let length = u16::from_be_bytes([*high, *low]).into();
            let entry = tail.get(..length).ok_or(format!("leaf {index}: cut off"))?;
            rest = &tail[length..];
            // Version 0.2.0 of `TileHashReader` may return hashes of tiles that it has not verified.
            prove_record(size, index, &hashes)
                .and_then(|proof| check_record(&proof, size, root, index, record_hash(entry)))
                .map_err(|error| format!("leaf {index}: {error}"))?;
            index += 1;
        }
        if !rest.is_empty() {
            return Err(format!("leaf {index}: not expected in this bundle").into());
        }
    }
    println!("{size} leaves");
    Ok(())
}
