package compose

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/consts"
	"github.com/compose-spec/compose-go/v2/dotenv"
	"github.com/compose-spec/compose-go/v2/types"
	"github.com/docker/cli/pkg/kvfile"
)

// Source says which files are read, and how.
type Source struct {
	// Files are the Compose files, a later one of which adds to those before. Default: those of COMPOSE_FILE, or the one that the program
	// "docker compose" takes in the directory, or the next one above that has one, with its override.
	Files []string
	// Directory is that of paths which are relative in the files. Default: that of the first file.
	Directory string
	// ProjectName is the name of the project. Default: COMPOSE_PROJECT_NAME, that in the files, or else the name of the directory.
	ProjectName string
	// Profiles are those whose services are taken, besides the services of none. Default: those of COMPOSE_PROFILES.
	Profiles []string
	// Environment are variables as os.Environ has them, for what stands in the files as ${NAME}, and the settings COMPOSE_*. Those of
	// EnvFiles count after them. Default: none.
	Environment []string
	// EnvFiles are files of variables, as --env-file has them: a later one counts before those before it. Default: those of
	// COMPOSE_ENV_FILES, or else the file .env in the directory, unless COMPOSE_DISABLE_ENV_FILE is true.
	EnvFiles []string
}

// Load reads a project from files. The error says what is wrong with them.
func Load(ctx context.Context, source Source) (*types.Project, error) {
	options, err := cli.NewProjectOptions(source.Files,
		cli.WithWorkingDirectory(source.Directory), cli.WithEnv(source.Environment),
		source.envFiles, cli.WithDotEnv, cli.WithConfigFileEnv, cli.WithDefaultConfigPath,
		// The files that were found may be in another directory, with a file .env of its own.
		source.envFiles, cli.WithDotEnv, cli.WithDefaultProfiles(source.Profiles...),
		cli.WithName(source.ProjectName), cli.WithDiscardEnvFile, cli.WithoutLabelsResolution,
	)
	if err != nil {
		return nil, fmt.Errorf("find the Compose files: %w", err)
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the Compose files: %w", err)
	}
	const discardLabelFiles = true
	if project, err = project.WithServicesLabelsResolved(discardLabelFiles); err != nil {
		return nil, fmt.Errorf("read the Compose files: %w", err)
	}
	return project, nil
}

// envFiles is cli.WithEnvFiles for the variables of the source instead of those of the process.
func (s *Source) envFiles(o *cli.ProjectOptions) error {
	env := types.NewMapping(s.Environment)
	if o.EnvFiles = s.EnvFiles; len(o.EnvFiles) > 0 {
		return nil
	}
	if files := env["COMPOSE_ENV_FILES"]; files != "" {
		o.EnvFiles = strings.Split(files, ",")
		return nil
	}
	if text := env[consts.ComposeDisableDefaultEnvFile]; text != "" {
		if disabled, err := strconv.ParseBool(text); err != nil || disabled {
			return err
		}
	}
	directory, err := o.GetWorkingDir()
	if err != nil {
		return err
	}
	file := filepath.Join(directory, ".env")
	switch info, err := os.Stat(file); {
	case os.IsNotExist(err):
		return nil
	case err != nil:
		return err
	case !info.IsDir():
		o.EnvFiles = []string{file}
	}
	return nil
}

// The library leaves the format raw of env_file, which "docker run --env-file" has, to the program.
func init() {
	dotenv.RegisterFormat("raw", func(r io.Reader, file string, vars map[string]string, lookup func(string) (string, bool)) error {
		lines, err := kvfile.ParseFromReader(r, lookup)
		if err != nil {
			return fmt.Errorf("read %s: %w", file, err)
		}
		for _, line := range lines {
			name, value, _ := strings.Cut(line, "=")
			vars[name] = value
		}
		return nil
	})
}
