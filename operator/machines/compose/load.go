package compose

import (
	"context"
	"fmt"

	"github.com/compose-spec/compose-go/v2/cli"
	"github.com/compose-spec/compose-go/v2/types"
)

// Source says which files are read, and how.
type Source struct {
	// Files are the Compose files, a later one of which adds to those before. Default: the one that the program "docker compose" takes in
	// the directory, or the next one above that has one, with its override.
	Files []string
	// Directory is that of paths which are relative in the files. Default: that of the first file.
	Directory string
	// ProjectName is the name of the project. Default: that in the files, or else the name of the directory.
	ProjectName string
	// Profiles are those whose services are taken, besides the services of none.
	Profiles []string
	// Environment are variables as os.Environ has them, for what stands in the files as ${NAME}. Those of a file .env in the directory count
	// after them. Default: none.
	Environment []string
}

// Load reads a project from files. The error says what is wrong with them.
func Load(ctx context.Context, source Source) (*types.Project, error) {
	options, err := cli.NewProjectOptions(source.Files,
		cli.WithWorkingDirectory(source.Directory), cli.WithEnv(source.Environment), cli.WithDotEnv, cli.WithDefaultConfigPath,
		cli.WithName(source.ProjectName), cli.WithProfiles(source.Profiles), cli.WithDiscardEnvFile,
	)
	if err != nil {
		return nil, fmt.Errorf("find the Compose files: %w", err)
	}
	project, err := options.LoadProject(ctx)
	if err != nil {
		return nil, fmt.Errorf("read the Compose files: %w", err)
	}
	return project, nil
}
