// Package commands are the commands of an operator of package machines that are for the people who use its services: what runs where,
// what it says, a program in a container, and services of Compose files.
//
//	command.Config{
//		…
//		Commands: commands.New,
//	}
//
//	$ operator ps                       # the containers of all services of the namespace, on all machines
//	$ operator logs web --follow        # what the containers of service web write, wherever they are
//	$ operator exec web -- date         # a program in one of them
//	$ operator compose convert          # MachineServices of docker-compose.yaml
//
// One more, names, is for containers that the operator makes: machines.Config.Names says how.
//
// They reach engines themselves, not by way of the operator: with the addresses of the Machines, from where they run, and with what the
// Secrets of these have. Who may use them has to be allowed to list Machines and to get their Secrets, and is root on the machines
// with that. Only containers of the operator are shown and used.
package commands
