"""What runs on the machine: first boot and enrolment. Standard library only, for the image carries no packages of ours."""
