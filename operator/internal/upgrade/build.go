package upgrade

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
)

// ThisBuild returns the build of this process: the hash of its executable, its arguments, and what
// else configures it, such as environment variables.
func ThisBuild(version string, further ...string) (Build, error) {
	path, err := os.Executable()
	if err != nil {
		return Build{}, fmt.Errorf("find the executable: %w", err)
	}
	executable, err := os.Open(path) //nolint:gosec // the path is that of this process
	if err != nil {
		return Build{}, fmt.Errorf("read the executable: %w", err)
	}
	defer func() { _ = executable.Close() }()
	hash := sha256.New()
	if _, err := io.Copy(hash, executable); err != nil {
		return Build{}, fmt.Errorf("read the executable: %w", err)
	}
	fmt.Fprintf(hash, "%q", append(os.Args[1:len(os.Args):len(os.Args)], further...))
	return Build{ID: hex.EncodeToString(hash.Sum(nil))[:16], Version: version}, nil
}
